"""An OpenAI-compatible service on loopback: it answers what it is told, and remembers what it was asked."""

import json
from collections.abc import Callable
from typing import Any

from tests.origin import Answer, Origin, Received


class ModelService:
    def __init__(self, origin: Origin) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answers: list[str | Answer] = ["an answer"]
        self.rule: Callable[[str], str | Answer] | None = None  # instead: the answer to a prompt
        self.base_url = origin.url("/v1")
        origin.route("/v1/chat/completions", self._complete)

    def _complete(self, request: Received) -> Answer:
        asked = json.loads(request.body)
        self.asked.append(asked)
        self.keys.append(request.headers.get("authorization"))
        if self.rule is not None:
            answer = self.rule(asked["messages"][-1]["content"])
        else:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Answer):
            return answer
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": asked["model"],
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
        return Answer(body=json.dumps(body), content_type="application/json")
