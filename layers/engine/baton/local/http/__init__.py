"""API Gateway and the issuer of tokens that callers sign in at."""
