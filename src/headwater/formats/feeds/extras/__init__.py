"""What feeds say beyond titles, texts and dates: podcasts, media, places, licences and extensions.

`vocabulary` says which element has which key in the JSON of an item. `read`, `clean` and `write` work by its tables.
"""
