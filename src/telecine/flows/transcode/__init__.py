"""The transcode flow."""

from telecine.flows.transcode.flow import NAME, transcode_flow
from telecine.flows.transcode.options import Options

__all__ = ["NAME", "Options", "transcode_flow"]
