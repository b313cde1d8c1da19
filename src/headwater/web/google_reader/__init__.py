"""The Google Reader API, as reader apps speak it: below `/reader/` and below `/api/greader.php/`."""
