"""Reading: what a person subscribes to, as a list beside an article, with bookmarks and apps."""
