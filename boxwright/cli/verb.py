"""What every verb has in common: how its errors end, and that a failed run names its log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from boxwright.cli import run_logs
from boxwright.cli.console import fault_of_ours, say_aside, silence, stopped, tell, tolerant
from boxwright.errors import EXIT_FAILED, UserError
from boxwright.texts import from_home


def told(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb whose errors end as a message and an exit status, never as a traceback.

    Its option --verbose is seen to here: whatever playbooks it runs show all of what they do.
    """

    @wraps(verb)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        as_json = bool(kwargs.get("json"))
        words = [word for path in _listed(kwargs.get("inventory")) for word in ("--inventory", path)]
        run_logs.begin(verb.__name__, verbose=bool(kwargs.get("verbose")), words=words)
        tolerant(sys.stdout, sys.stderr)
        try:
            return verb(*args, **kwargs)
        except SystemExit as done:
            # What failed was told by now; where the rest of it stands was not.
            if done.code and (log := run_logs.named()):
                say_aside(f"All that Ansible said: {from_home(log)}")
            raise
        except UserError as error:
            error.log = run_logs.named()
            tell(error, as_json=as_json)
        except KeyboardInterrupt:
            print(file=sys.stderr)
            tell(stopped(), as_json=as_json)
        except BrokenPipeError:
            silence()
            sys.exit(EXIT_FAILED)
        except Exception as error:
            tell(fault_of_ours(error), as_json=as_json)

    return wrapper


def _listed(given: Any) -> list[str]:
    """A repeatable option's values, or the one of another."""
    return [given] if isinstance(given, str) and given else list(given or ())
