"""Events of a saga, the entries around them, and the state that they fold to.

A fold trusts its log. Decisions are made in core/decide/.
"""
