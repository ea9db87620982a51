"""What is found out about a document before it is judged: its edges,
loops, what must run and what each node can read.
"""
