"""What the plan says of a restart is what the module does."""

from ansible.module_utils import docker_daemon

from boxwright.planner.changes import runtime


def test_the_plan_and_the_module_agree_on_what_takes_no_restart():
    assert runtime.RELOADABLE == docker_daemon.RELOADABLE
    assert runtime.RESETTING == docker_daemon.RESETTING
