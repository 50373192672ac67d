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
    from kaiwa.apps.actions import Action as Action
    from kaiwa.apps.app import App as App
    from kaiwa.apps.ask import AskActionMessage as AskActionMessage
    from kaiwa.apps.ask import AskElementMessage as AskElementMessage
    from kaiwa.apps.ask import AskFileMessage as AskFileMessage
    from kaiwa.apps.ask import AskFileResponse as AskFileResponse
    from kaiwa.apps.ask import AskUserMessage as AskUserMessage
    from kaiwa.apps.asynchrony import make_async as make_async
    from kaiwa.apps.asynchrony import run_sync as run_sync
    from kaiwa.apps.asynchrony import sleep as sleep
    from kaiwa.apps.cache import cache as cache
    from kaiwa.apps.chat_context import chat_context as chat_context
    from kaiwa.apps.chat_settings import ChatSettings as ChatSettings
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
    from kaiwa.apps.elements import Audio as Audio
    from kaiwa.apps.elements import CustomElement as CustomElement
    from kaiwa.apps.elements import Dataframe as Dataframe
    from kaiwa.apps.elements import Element as Element
    from kaiwa.apps.elements import File as File
    from kaiwa.apps.elements import Image as Image
    from kaiwa.apps.elements import Pdf as Pdf
    from kaiwa.apps.elements import Plotly as Plotly
    from kaiwa.apps.elements import Pyplot as Pyplot
    from kaiwa.apps.elements import Text as Text
    from kaiwa.apps.elements import Video as Video
    from kaiwa.apps.feedback import Feedback as Feedback
    from kaiwa.apps.message import ErrorMessage as ErrorMessage
    from kaiwa.apps.message import Message as Message
    from kaiwa.apps.model import Model as Model
    from kaiwa.apps.modes import Mode as Mode
    from kaiwa.apps.modes import ModeOption as ModeOption
    from kaiwa.apps.reply import reply as reply
    from kaiwa.apps.sidebar import ElementSidebar as ElementSidebar
    from kaiwa.apps.starters import ChatProfile as ChatProfile
    from kaiwa.apps.starters import Starter as Starter
    from kaiwa.apps.starters import StarterCategory as StarterCategory
    from kaiwa.apps.step import Step as Step
    from kaiwa.apps.step_decorator import step as step
    from kaiwa.apps.task_list import Task as Task
    from kaiwa.apps.task_list import TaskList as TaskList
    from kaiwa.apps.task_list import TaskStatus as TaskStatus
    from kaiwa.apps.user import User as User
    from kaiwa.apps.user_session import user_session as user_session
    from kaiwa.apps.widgets import Checkbox as Checkbox
    from kaiwa.apps.widgets import DatePicker as DatePicker
    from kaiwa.apps.widgets import MultiSelect as MultiSelect
    from kaiwa.apps.widgets import NumberInput as NumberInput
    from kaiwa.apps.widgets import RadioGroup as RadioGroup
    from kaiwa.apps.widgets import Select as Select
    from kaiwa.apps.widgets import Slider as Slider
    from kaiwa.apps.widgets import Switch as Switch
    from kaiwa.apps.widgets import Tab as Tab
    from kaiwa.apps.widgets import Tags as Tags
    from kaiwa.apps.widgets import TextInput as TextInput
    from kaiwa.apps.window import CopilotFunction as CopilotFunction
    from kaiwa.apps.window import send_window_message as send_window_message
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
    "Action": "kaiwa.apps.actions",
    "App": "kaiwa.apps.app",
    "Uploads": "kaiwa.apps.definition",
    "AskActionMessage": "kaiwa.apps.ask",
    "AskElementMessage": "kaiwa.apps.ask",
    "AskFileMessage": "kaiwa.apps.ask",
    "AskFileResponse": "kaiwa.apps.ask",
    "AskUserMessage": "kaiwa.apps.ask",
    "make_async": "kaiwa.apps.asynchrony",
    "run_sync": "kaiwa.apps.asynchrony",
    "sleep": "kaiwa.apps.asynchrony",
    "cache": "kaiwa.apps.cache",
    "chat_context": "kaiwa.apps.chat_context",
    "ChatSettings": "kaiwa.apps.chat_settings",
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
    "Audio": "kaiwa.apps.elements",
    "CustomElement": "kaiwa.apps.elements",
    "Dataframe": "kaiwa.apps.elements",
    "Element": "kaiwa.apps.elements",
    "File": "kaiwa.apps.elements",
    "Image": "kaiwa.apps.elements",
    "Pdf": "kaiwa.apps.elements",
    "Plotly": "kaiwa.apps.elements",
    "Pyplot": "kaiwa.apps.elements",
    "Text": "kaiwa.apps.elements",
    "Video": "kaiwa.apps.elements",
    "Feedback": "kaiwa.apps.feedback",
    "ErrorMessage": "kaiwa.apps.message",
    "Message": "kaiwa.apps.message",
    "Model": "kaiwa.apps.model",
    "Mode": "kaiwa.apps.modes",
    "ModeOption": "kaiwa.apps.modes",
    "reply": "kaiwa.apps.reply",
    "ElementSidebar": "kaiwa.apps.sidebar",
    "ChatProfile": "kaiwa.apps.starters",
    "Starter": "kaiwa.apps.starters",
    "StarterCategory": "kaiwa.apps.starters",
    "Step": "kaiwa.apps.step",
    "step": "kaiwa.apps.step_decorator",
    "Task": "kaiwa.apps.task_list",
    "TaskList": "kaiwa.apps.task_list",
    "TaskStatus": "kaiwa.apps.task_list",
    "User": "kaiwa.apps.user",
    "user_session": "kaiwa.apps.user_session",
    "Checkbox": "kaiwa.apps.widgets",
    "DatePicker": "kaiwa.apps.widgets",
    "MultiSelect": "kaiwa.apps.widgets",
    "NumberInput": "kaiwa.apps.widgets",
    "RadioGroup": "kaiwa.apps.widgets",
    "Select": "kaiwa.apps.widgets",
    "Slider": "kaiwa.apps.widgets",
    "Switch": "kaiwa.apps.widgets",
    "Tab": "kaiwa.apps.widgets",
    "Tags": "kaiwa.apps.widgets",
    "TextInput": "kaiwa.apps.widgets",
    "CopilotFunction": "kaiwa.apps.window",
    "send_window_message": "kaiwa.apps.window",
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
