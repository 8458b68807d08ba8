"""Telling the night's news: chat and mail by apprise, an issue on GitHub for each loss, metrics for Prometheus."""
