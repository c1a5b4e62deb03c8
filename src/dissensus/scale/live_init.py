"""Labelling tools while people work in them: what they send, and what is written back."""

from __future__ import annotations

from .label_studio_api import ApiKey, LabelStudioApi, read_api_key
from .label_studio_project import LabelStudioProject
from .webhooks import WebhookReceiver

__all__ = ["ApiKey", "LabelStudioApi", "LabelStudioProject", "WebhookReceiver", "read_api_key"]
