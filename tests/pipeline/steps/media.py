"""Small real media files for tests: a tone in a WAV file, and a moving picture with a tone in an MP4 file."""

import io
import math
import struct
import wave

import av
import numpy as np


def wav(seconds: float = 2.0, rate: int = 16_000) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        samples = (int(9_000 * math.sin(440 * 2 * math.pi * n / rate)) for n in range(int(seconds * rate)))
        out.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return buffer.getvalue()


def mp4(seconds: float = 2.0) -> bytes:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        picture = out.add_stream("mpeg4", rate=10)
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("aac", rate=16_000)
        for number in range(int(seconds * 10)):
            shade = np.full((48, 64, 3), number * 10 % 255, dtype=np.uint8)
            out.mux(picture.encode(av.VideoFrame.from_ndarray(shade, format="rgb24")))
        out.mux(picture.encode())
        count = int(seconds * 16_000)
        tone = (0.3 * np.sin(np.arange(count) * 440 * 2 * np.pi / 16_000)).astype(np.float32)
        for start in range(0, count, 1024):
            frame = av.AudioFrame.from_ndarray(tone[None, start : start + 1024], format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 16_000, start
            out.mux(sound.encode(frame))
        out.mux(sound.encode())
    return buffer.getvalue()
