"""The public JSON of every noun, made once: the API, `--json`, outlets, steps and pages show the same fields.

A noun has a model, which says what its fields are and mean (the API's description is made from it), and a function
`…_json`, which makes the JSON. Secrets are masked here, so that no caller has to remember to.
"""
