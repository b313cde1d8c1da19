"""What our pages may load and do: nothing but their own files."""

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A page that shows a copy of a publisher's page in a frame; the copy runs nothing and loads only our own style.
FRAMING_POLICY = CONTENT_POLICY + "; frame-src 'self'"
COPY_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'self'; sandbox allow-same-origin"
