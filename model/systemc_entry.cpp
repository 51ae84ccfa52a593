// libsystemc refers to sc_main from the main() that it brings. Programs here have a main() of their own and call
// sc_start from it, so this one is never called.
extern "C" int sc_main(int, char**);
int sc_main(int, char**) { return 0; }
