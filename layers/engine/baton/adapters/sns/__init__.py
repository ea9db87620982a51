"""Notices to people through SNS, on top of the notices that the saga table keeps."""
