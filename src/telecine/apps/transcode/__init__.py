"""The transcode flow."""

from telecine.apps.transcode.flow import NAME, transcode_flow
from telecine.apps.transcode.options import Options

__all__ = ["NAME", "Options", "transcode_flow"]
