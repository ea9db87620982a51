"""What the commands share: options and arguments, the streams, the way to the API, staying with a saga."""
