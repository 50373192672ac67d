"""Kaiwa (会話): chat with language models on your own machine.

    import kaiwa as kw

    llm = kw.LLM("smollm2:135m")
    print(llm.chat("Hey, can you explain gravity to me?").text)

Names load when they are first used, so that importing Kaiwa is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaiwa import errors as errors
    from kaiwa.apps.app import App as App
    from kaiwa.apps.asynchrony import make_async as make_async
    from kaiwa.apps.asynchrony import run_sync as run_sync
    from kaiwa.apps.asynchrony import sleep as sleep
    from kaiwa.apps.cache import cache as cache
    from kaiwa.apps.chat_context import chat_context as chat_context
    from kaiwa.apps.content.actions import Action as Action
    from kaiwa.apps.content.ask import AskActionMessage as AskActionMessage
    from kaiwa.apps.content.ask import AskElementMessage as AskElementMessage
    from kaiwa.apps.content.ask import AskFileMessage as AskFileMessage
    from kaiwa.apps.content.ask import AskFileResponse as AskFileResponse
    from kaiwa.apps.content.ask import AskUserMessage as AskUserMessage
    from kaiwa.apps.content.chat_settings import ChatSettings as ChatSettings
    from kaiwa.apps.content.elements import Audio as Audio
    from kaiwa.apps.content.elements import CustomElement as CustomElement
    from kaiwa.apps.content.elements import Dataframe as Dataframe
    from kaiwa.apps.content.elements import Element as Element
    from kaiwa.apps.content.elements import File as File
    from kaiwa.apps.content.elements import Image as Image
    from kaiwa.apps.content.elements import Pdf as Pdf
    from kaiwa.apps.content.elements import Plotly as Plotly
    from kaiwa.apps.content.elements import Pyplot as Pyplot
    from kaiwa.apps.content.elements import Text as Text
    from kaiwa.apps.content.elements import Video as Video
    from kaiwa.apps.content.feedback import Feedback as Feedback
    from kaiwa.apps.content.message import ErrorMessage as ErrorMessage
    from kaiwa.apps.content.message import Message as Message
    from kaiwa.apps.content.modes import Mode as Mode
    from kaiwa.apps.content.modes import ModeOption as ModeOption
    from kaiwa.apps.content.reply import reply as reply
    from kaiwa.apps.content.sidebar import ElementSidebar as ElementSidebar
    from kaiwa.apps.content.starters import ChatProfile as ChatProfile
    from kaiwa.apps.content.starters import Starter as Starter
    from kaiwa.apps.content.starters import StarterCategory as StarterCategory
    from kaiwa.apps.content.step import Step as Step
    from kaiwa.apps.content.step_decorator import step as step
    from kaiwa.apps.content.task_list import Task as Task
    from kaiwa.apps.content.task_list import TaskList as TaskList
    from kaiwa.apps.content.task_list import TaskStatus as TaskStatus
    from kaiwa.apps.content.widgets import Checkbox as Checkbox
    from kaiwa.apps.content.widgets import DatePicker as DatePicker
    from kaiwa.apps.content.widgets import MultiSelect as MultiSelect
    from kaiwa.apps.content.widgets import NumberInput as NumberInput
    from kaiwa.apps.content.widgets import RadioGroup as RadioGroup
    from kaiwa.apps.content.widgets import Select as Select
    from kaiwa.apps.content.widgets import Slider as Slider
    from kaiwa.apps.content.widgets import Switch as Switch
    from kaiwa.apps.content.widgets import Tab as Tab
    from kaiwa.apps.content.widgets import Tags as Tags
    from kaiwa.apps.content.widgets import TextInput as TextInput
    from kaiwa.apps.content.window import CopilotFunction as CopilotFunction
    from kaiwa.apps.content.window import send_window_message as send_window_message
    from kaiwa.apps.context import context as context
    from kaiwa.apps.decorators import action_callback as action_callback
    from kaiwa.apps.decorators import author_rename as author_rename
    from kaiwa.apps.decorators import data_layer as data_layer
    from kaiwa.apps.decorators import header_auth_callback as header_auth_callback
    from kaiwa.apps.decorators import oauth_callback as oauth_callback
    from kaiwa.apps.decorators import on_app_shutdown as on_app_shutdown
    from kaiwa.apps.decorators import on_app_startup as on_app_startup
    from kaiwa.apps.decorators import on_chat_end as on_chat_end
    from kaiwa.apps.decorators import on_chat_resume as on_chat_resume
    from kaiwa.apps.decorators import on_chat_start as on_chat_start
    from kaiwa.apps.decorators import on_feedback as on_feedback
    from kaiwa.apps.decorators import on_logout as on_logout
    from kaiwa.apps.decorators import on_message as on_message
    from kaiwa.apps.decorators import on_settings_edit as on_settings_edit
    from kaiwa.apps.decorators import on_settings_update as on_settings_update
    from kaiwa.apps.decorators import on_stop as on_stop
    from kaiwa.apps.decorators import on_window_message as on_window_message
    from kaiwa.apps.decorators import password_auth_callback as password_auth_callback
    from kaiwa.apps.decorators import set_chat_profiles as set_chat_profiles
    from kaiwa.apps.decorators import set_starter_categories as set_starter_categories
    from kaiwa.apps.decorators import set_starters as set_starters
    from kaiwa.apps.definition import Uploads as Uploads
    from kaiwa.apps.model import Model as Model
    from kaiwa.apps.user import User as User
    from kaiwa.apps.user_session import user_session as user_session
    from kaiwa.chat.tools import arun_tools as arun_tools
    from kaiwa.chat.tools import run_tools as run_tools
    from kaiwa.compat.transformers.generation_config import GenerationConfig as GenerationConfig
    from kaiwa.compat.transformers.model import AutoModelForCausalLM as AutoModelForCausalLM
    from kaiwa.compat.transformers.pipeline import pipeline as pipeline
    from kaiwa.compat.transformers.quantization import BitsAndBytesConfig as BitsAndBytesConfig
    from kaiwa.compat.transformers.streamers import TextIteratorStreamer as TextIteratorStreamer
    from kaiwa.compat.transformers.streamers import TextStreamer as TextStreamer
    from kaiwa.compat.transformers.tokenizer import AutoTokenizer as AutoTokenizer
    from kaiwa.events import Event as Event
    from kaiwa.events import Finished as Finished
    from kaiwa.events import Reply as Reply
    from kaiwa.events import TextDelta as TextDelta
    from kaiwa.events import Usage as Usage
    from kaiwa.runtime.llm import LLM as LLM
    from kaiwa.sampling import Sampling as Sampling

__version__ = "0.1.0"

_PUBLIC = {
    "AutoModelForCausalLM": "kaiwa.compat.transformers.model",
    "AutoTokenizer": "kaiwa.compat.transformers.tokenizer",
    "BitsAndBytesConfig": "kaiwa.compat.transformers.quantization",
    "GenerationConfig": "kaiwa.compat.transformers.generation_config",
    "TextIteratorStreamer": "kaiwa.compat.transformers.streamers",
    "TextStreamer": "kaiwa.compat.transformers.streamers",
    "pipeline": "kaiwa.compat.transformers.pipeline",
    "LLM": "kaiwa.runtime.llm",
    "arun_tools": "kaiwa.chat.tools",
    "run_tools": "kaiwa.chat.tools",
    "Sampling": "kaiwa.sampling",
    "Event": "kaiwa.events",
    "Finished": "kaiwa.events",
    "Reply": "kaiwa.events",
    "TextDelta": "kaiwa.events",
    "Usage": "kaiwa.events",
    "Action": "kaiwa.apps.content.actions",
    "App": "kaiwa.apps.app",
    "Uploads": "kaiwa.apps.definition",
    "AskActionMessage": "kaiwa.apps.content.ask",
    "AskElementMessage": "kaiwa.apps.content.ask",
    "AskFileMessage": "kaiwa.apps.content.ask",
    "AskFileResponse": "kaiwa.apps.content.ask",
    "AskUserMessage": "kaiwa.apps.content.ask",
    "make_async": "kaiwa.apps.asynchrony",
    "run_sync": "kaiwa.apps.asynchrony",
    "sleep": "kaiwa.apps.asynchrony",
    "cache": "kaiwa.apps.cache",
    "chat_context": "kaiwa.apps.chat_context",
    "ChatSettings": "kaiwa.apps.content.chat_settings",
    "context": "kaiwa.apps.context",
    "action_callback": "kaiwa.apps.decorators",
    "author_rename": "kaiwa.apps.decorators",
    "data_layer": "kaiwa.apps.decorators",
    "header_auth_callback": "kaiwa.apps.decorators",
    "oauth_callback": "kaiwa.apps.decorators",
    "on_app_shutdown": "kaiwa.apps.decorators",
    "on_app_startup": "kaiwa.apps.decorators",
    "on_chat_end": "kaiwa.apps.decorators",
    "on_chat_resume": "kaiwa.apps.decorators",
    "on_chat_start": "kaiwa.apps.decorators",
    "on_feedback": "kaiwa.apps.decorators",
    "on_logout": "kaiwa.apps.decorators",
    "on_message": "kaiwa.apps.decorators",
    "on_settings_edit": "kaiwa.apps.decorators",
    "on_settings_update": "kaiwa.apps.decorators",
    "on_stop": "kaiwa.apps.decorators",
    "on_window_message": "kaiwa.apps.decorators",
    "password_auth_callback": "kaiwa.apps.decorators",
    "set_chat_profiles": "kaiwa.apps.decorators",
    "set_starter_categories": "kaiwa.apps.decorators",
    "set_starters": "kaiwa.apps.decorators",
    "Audio": "kaiwa.apps.content.elements",
    "CustomElement": "kaiwa.apps.content.elements",
    "Dataframe": "kaiwa.apps.content.elements",
    "Element": "kaiwa.apps.content.elements",
    "File": "kaiwa.apps.content.elements",
    "Image": "kaiwa.apps.content.elements",
    "Pdf": "kaiwa.apps.content.elements",
    "Plotly": "kaiwa.apps.content.elements",
    "Pyplot": "kaiwa.apps.content.elements",
    "Text": "kaiwa.apps.content.elements",
    "Video": "kaiwa.apps.content.elements",
    "Feedback": "kaiwa.apps.content.feedback",
    "ErrorMessage": "kaiwa.apps.content.message",
    "Message": "kaiwa.apps.content.message",
    "Model": "kaiwa.apps.model",
    "Mode": "kaiwa.apps.content.modes",
    "ModeOption": "kaiwa.apps.content.modes",
    "reply": "kaiwa.apps.content.reply",
    "ElementSidebar": "kaiwa.apps.content.sidebar",
    "ChatProfile": "kaiwa.apps.content.starters",
    "Starter": "kaiwa.apps.content.starters",
    "StarterCategory": "kaiwa.apps.content.starters",
    "Step": "kaiwa.apps.content.step",
    "step": "kaiwa.apps.content.step_decorator",
    "Task": "kaiwa.apps.content.task_list",
    "TaskList": "kaiwa.apps.content.task_list",
    "TaskStatus": "kaiwa.apps.content.task_list",
    "User": "kaiwa.apps.user",
    "user_session": "kaiwa.apps.user_session",
    "Checkbox": "kaiwa.apps.content.widgets",
    "DatePicker": "kaiwa.apps.content.widgets",
    "MultiSelect": "kaiwa.apps.content.widgets",
    "NumberInput": "kaiwa.apps.content.widgets",
    "RadioGroup": "kaiwa.apps.content.widgets",
    "Select": "kaiwa.apps.content.widgets",
    "Slider": "kaiwa.apps.content.widgets",
    "Switch": "kaiwa.apps.content.widgets",
    "Tab": "kaiwa.apps.content.widgets",
    "Tags": "kaiwa.apps.content.widgets",
    "TextInput": "kaiwa.apps.content.widgets",
    "CopilotFunction": "kaiwa.apps.content.window",
    "send_window_message": "kaiwa.apps.content.window",
}

__all__ = [*sorted([*_PUBLIC, "errors"])]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("kaiwa.errors")
    if name not in _PUBLIC:
        from kaiwa.errors import did_you_mean

        raise AttributeError(f"module 'kaiwa' has no attribute {name!r} ({did_you_mean(name, __all__)})")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
