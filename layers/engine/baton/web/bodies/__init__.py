"""What bodies of requests and answers look like, one file for each subject."""
