"""The console: pages on which people watch, understand and answer sagas.

Pages render the API's own answers as HTML. The first request for a page imports this package. Reading order:
site, pages, then a page's own file.
"""
