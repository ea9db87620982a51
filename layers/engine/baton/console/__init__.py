"""The console: pages by which people watch, understand and answer sagas.
Reading order: site, pages, then a page's own file.

Pages are views of the API's own answers: data in, HTML out.
The room is imported by the first request for a page.
"""
