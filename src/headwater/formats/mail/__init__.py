"""Letters (e-mail): from the bytes of a message to an item. Pure.

`read` takes a message apart, `clean` makes its HTML fit to read, `actions` finds what a reader can do with it:
unsubscribe, confirm, read it on the web.
"""
