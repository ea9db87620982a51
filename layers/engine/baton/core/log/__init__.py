"""What has happened: events, the entries around them, and the state that they fold to.

A fold trusts its log. What is decided next is in core/decide/.
"""
