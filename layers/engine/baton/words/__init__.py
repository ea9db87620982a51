"""Events and plans as sentences, for the command line and the console. Pure functions of API answers."""
