"""Events and plans as sentences, for the command line as for the console.
Pure: what the API answers in, words out.
"""
