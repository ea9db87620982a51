"""The saga table in DynamoDB: every port that keeps something there, one file for each."""
