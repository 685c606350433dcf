package world

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// named answers with a name.
func named(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name)) })
}

func TestJoin_ALaterServerOfANameAnswersOnlyWhatItOwns(t *testing.T) {
	hosts := join(nil, host{name: "github.com", port: "443", what: "releases", handler: named("releases")})
	hosts = join(hosts, host{name: "github.com", port: "443", what: "Git", handler: named("git"), owns: below("/a/b.git", "/public/a/b.git")})
	hosts = join(hosts, host{name: "github.com", port: "443", what: "another", handler: named("another")})
	hosts = join(hosts, host{name: "github.com", port: "8443", what: "private", handler: named("private")})
	require.Len(t, hosts, 2)
	for path, want := range map[string]string{
		"/a/b.git": "git", "/a/b.git/info/refs": "git", "/public/a/b.git/info/refs": "git",
		"/a/b.github": "releases", "/a/c.git": "releases", "/": "releases",
	} {
		answer := httptest.NewRecorder()
		hosts[0].handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, want, answer.Body.String(), path)
	}
	require.Equal(t, "releases, Git", hosts[0].what)
}
