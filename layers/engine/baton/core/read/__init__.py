"""Views of sagas: answers, explanations, usage, costs and figures, read off logs and states.

Nothing here changes a saga, and no step needs it to run.
"""
