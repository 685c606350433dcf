// Package plugins holds the tests that compare the SDK that the program is compiled with and the SDK of the plugin that it asks for.
//
// It is a module of its own, because only these tests need the second SDK. They read the sources of both, which come as Go modules.
package plugins
