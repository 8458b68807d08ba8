"""The night report before it takes a form: every word of it is decided here, and each form only sets it.

Pure. All text in a page is free of control characters; escaping what its form calls markup is the form's business.
"""
