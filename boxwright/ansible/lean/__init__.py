"""Running modules of ours on hosts without Ansible's wrapper, which costs more than most of them do."""
