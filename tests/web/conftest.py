"""What tests of the web application share."""

from pathlib import Path

import pytest

from headwater.config import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(directory=tmp_path, environment={})
