"""Thin adapters to Ansible: modules run on hosts, action and callback plugins on the controller."""
