package git

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

// app is an app with its key, and a function that calls its API with a token.
func app(t *testing.T) (a *App, key *rsa.PrivateKey, call func(method, path, token string) (int, map[string]any)) {
	t.Helper()
	a = &App{ID: 7, Installation: 42, Owner: "platform", Dir: filepath.Join(t.TempDir(), "app")}
	require.NoError(t, a.Open())
	text, err := os.ReadFile(filepath.Join(a.Dir, AppKeyFile))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	require.NoError(t, err)
	server := httptest.NewServer(a.Handler())
	t.Cleanup(server.Close)
	return a, key, func(method, path, token string) (int, map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		var value map[string]any
		require.NoError(t, json.Unmarshal(body, &value), "%s", body)
		return response.StatusCode, value
	}
}

// signed returns a JSON web token.
func signed(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	part := func(value any) string {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// claims returns the claims of a good token, with changes.
func claims(changes map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{"iss": "7", "iat": now.Add(-30 * time.Second).Unix(), "exp": now.Add(90 * time.Second).Unix()}
	for key, value := range changes {
		all[key] = value
	}
	return all
}

const tokenPath = "/app/installations/42/access_tokens"

func TestApp_MakesTokensWithWhichTheRepositoryIsRead(t *testing.T) {
	a, key, call := app(t)
	status, made := call(http.MethodPost, tokenPath, signed(t, key, claims(nil)))
	require.Equal(t, http.StatusCreated, status)
	token := made["token"].(string)
	until, err := time.Parse(time.RFC3339, made["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), until, time.Minute)

	checkout := t.TempDir()
	run(t, checkout, "init", "--quiet", "--initial-branch=work")
	head := commit(t, checkout, "one")
	s := &Server{Checkout: checkout, Dir: filepath.Join(t.TempDir(), "bare"), Path: path, Branches: []string{"main"}, Username: "flux",
		Password: "p", App: a, Faults: &fault.Set{}, Log: slog.New(slog.DiscardHandler)}
	h, err := s.Handler(t.Context())
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + path)
	require.NoError(t, err)
	u.User = url.UserPassword("x-access-token", token)
	require.Equal(t, head+"\trefs/heads/main", run(t, checkout, "ls-remote", u.String(), "main"))
	for _, user := range []*url.Userinfo{url.UserPassword("flux", token), url.UserPassword("x-access-token", "ghs_"+rand.Text()),
		url.UserPassword("x-access-token", "")} {
		u.User = user
		r, err := http.Get(u.String() + "/info/refs?service=git-upload-pack")
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusUnauthorized, r.StatusCode, user.Username())
	}
	a.tokens[token] = time.Now()
	require.False(t, a.knows("x-access-token", token), "it has expired")
}

func TestApp_FindsTheInstallationOfItsOwner(t *testing.T) {
	_, key, call := app(t)
	good := signed(t, key, claims(map[string]any{"iss": 7})) // a number, as older clients send it
	status, found := call(http.MethodGet, "/orgs/Platform/installation", good)
	require.Equal(t, http.StatusOK, status)
	require.InDelta(t, 42, found["id"], 0)
	for _, path := range []string{"/orgs/other/installation", "/users/platform/installation", "/app"} {
		status, refused := call(http.MethodGet, path, good)
		require.Equal(t, http.StatusNotFound, status, path)
		require.Equal(t, "Not Found", refused["message"])
	}
}

func TestApp_RefusesAsGitHubDoes(t *testing.T) {
	_, key, call := app(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	good := signed(t, key, claims(nil))
	unsigned := strings.Join(strings.Split(good, ".")[:2], ".") + "."
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(good, ".")[1] + "."
	now := time.Now()
	for _, one := range []struct {
		what, token, path string
		status            int
		message           string
	}{
		{"no token", "", tokenPath, 401, "could not be decoded"},
		{"no JSON web token", "x", tokenPath, 401, "could not be decoded"},
		{"another key", signed(t, other, claims(nil)), tokenPath, 401, "could not be decoded"},
		{"no signature", unsigned, tokenPath, 401, "could not be decoded"},
		{"algorithm none", none, tokenPath, 401, "could not be decoded"},
		{"another app", signed(t, key, claims(map[string]any{"iss": "8"})), tokenPath, 404, "Integration not found"},
		{"expired", signed(t, key, claims(map[string]any{"exp": now.Add(-time.Second).Unix()})), tokenPath, 401, "'exp'"},
		{"too long", signed(t, key, claims(map[string]any{"exp": now.Add(11 * time.Minute).Unix()})), tokenPath, 401, "too far in the future"},
		{"not issued yet", signed(t, key, claims(map[string]any{"iat": now.Add(time.Minute).Unix()})), tokenPath, 401, "'iat'"},
		{"another installation", good, "/app/installations/43/access_tokens", 404, "Not Found"},
	} {
		status, refused := call(http.MethodPost, one.path, one.token)
		require.Equal(t, one.status, status, one.what)
		require.Contains(t, refused["message"], one.message, one.what)
	}
}

func TestApp_KeepsItsKey(t *testing.T) {
	a := &App{ID: 1, Dir: filepath.Join(t.TempDir(), "app")}
	require.NoError(t, a.Open())
	again := &App{ID: 1, Dir: a.Dir}
	require.NoError(t, again.Open())
	require.True(t, a.key.Equal(again.key))
	info, err := os.Stat(filepath.Join(a.Dir, AppKeyFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(filepath.Join(a.Dir, AppKeyFile), []byte("x"), 0o600))
	require.ErrorContains(t, (&App{Dir: a.Dir}).Open(), "remove it")
}
