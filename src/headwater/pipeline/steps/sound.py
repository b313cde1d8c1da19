"""Sound by ffmpeg's libraries (PyAV), where its program is not installed. Blocking, in a separate process.

As with the program, a stranger's file is read in one of the usual formats of media, and nothing else is.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import StepError

if TYPE_CHECKING:
    from av import AudioFrame

FRAME_SAMPLES = 1_024  # of the codec
SLOWEST_RATE, FASTEST_RATE = 8_000, 48_000


@dataclass
class Writer:
    """Sound on its way into one file, or into several of at most so many samples."""

    folder: Path
    name: str  # of a file; `{number}` stands for its place
    rate: int
    layout: str
    bits: int
    most_samples: int = 0
    starts: list[float] = field(default_factory=list)
    _written: int = 0
    _in_part: int = 0
    _container: Any = None
    _stream: Any = None

    def write(self, frame: "AudioFrame") -> None:
        if self._container is None or (
            self.most_samples and self._in_part + frame.samples > self.most_samples
        ):
            self._begin()
        frame.pts = self._in_part
        self._container.mux(self._stream.encode(frame))
        self._in_part += frame.samples
        self._written += frame.samples

    def close(self) -> None:
        if self._container is not None:
            self._container.mux(self._stream.encode())
            self._container.close()
            self._container = None

    def paths(self) -> list[str]:
        return [str(self._path(number)) for number in range(len(self.starts))]

    def _begin(self) -> None:
        import av

        self.close()
        self.starts.append(self._written / self.rate)
        self._container = av.open(str(self._path(len(self.starts) - 1)), "w", format="mp4")
        self._stream = self._container.add_stream("aac", rate=self.rate, layout=self.layout)
        self._stream.bit_rate = self.bits
        self._in_part = 0

    def _path(self, number: int) -> Path:
        return self.folder / self.name.format(number=number)


def work_in_child(task: dict[str, Any]) -> dict[str, Any]:
    """Write the sound of a file again: `parts` of it with their beginnings in seconds."""
    import av

    path = task["path"]
    options = {"protocol_whitelist": "file", "format_whitelist": task["formats"]}
    try:
        with av.open(f"file:{path}", options=options) as source:
            stream = next(iter(source.streams.audio), None)
            if stream is None:
                raise _no_sound(path, "it has no stream of sound")
            rate = task.get("rate") or min(max(stream.rate, SLOWEST_RATE), FASTEST_RATE)
            layout = "mono" if task.get("mono") or stream.channels == 1 else "stereo"
            most = int(task.get("max_seconds", 0) * rate)
            writer = Writer(Path(task["folder"]), task["name"], rate, layout, task["bits"], most)
            resampler = av.AudioResampler(format="fltp", layout=layout, rate=rate, frame_size=FRAME_SAMPLES)
            try:
                for frame in source.decode(stream):
                    for piece in resampler.resample(frame):
                        writer.write(piece)
                for piece in resampler.resample(None):
                    writer.write(piece)
            finally:
                writer.close()
    except av.error.FFmpegError as error:
        raise _no_sound(path, str(error)) from None
    if not writer.starts:
        raise _no_sound(path, "it holds no sound")
    return {"parts": list(zip(writer.paths(), writer.starts, strict=True))}


def _no_sound(path: str, problem: str) -> StepError:
    return StepError(
        "{path}: ffmpeg found no sound that it can read: {problem}", path=path, problem=problem[-300:]
    )
