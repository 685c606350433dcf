package connect

import (
	"encoding/base64"
	"encoding/json"
	"io"

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

const content = `vaults:
  - name: platform
    items:
      - title: db
        tags: [sql]
        fields: {username: admin, password: s3cret, port: "5432"}
  - name: private
    items: [{title: diary, fields: {password: x}}]
`

func account(t *testing.T) *Account {
	t.Helper()
	a, err := OpenAccount(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, VaultsFile), []byte(content), 0o600))
	return a
}

func server(t *testing.T) *Server {
	return &Server{Account: account(t), Cluster: "infra", Faults: &fault.Set{}}
}

// ask returns status and body of an answer.
func ask(t *testing.T, s *Server, token, method, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w.Code, strings.TrimSpace(string(body))
}

func token(t *testing.T, a *Account, expires time.Duration, vaults ...string) string {
	t.Helper()
	text, err := a.Token(time.Now().Add(expires), vaults...)
	require.NoError(t, err)
	return text
}

func TestServer_AnswersWithVaultsItems(t *testing.T) {
	s := server(t)
	good := token(t, s.Account, time.Hour, "platform")
	get := func(path string, into any) {
		t.Helper()
		code, body := ask(t, s, good, "GET", path)
		require.Equal(t, 200, code, body)
		require.NoError(t, json.Unmarshal([]byte(body), into), body)
	}
	type named struct{ ID, Name, Title, Label, Value, Category string }
	var list []named
	get("/v1/vaults", &list)
	require.Len(t, list, 1, "the token names one of the two vaults")
	require.Regexp(t, "^[a-z0-9]{26}$", list[0].ID)
	vault := "/v1/vaults/" + list[0].ID
	get("/v1/vaults?filter="+url.QueryEscape(`title eq "platform"`), &list)
	require.Equal(t, "platform", list[0].Name)
	get("/v1/vaults?filter="+url.QueryEscape(`name eq "none"`), &list)
	require.Empty(t, list)
	var one named
	get(vault, &one)
	require.Equal(t, "platform", one.Name)
	get(vault+"/items?filter="+url.QueryEscape(`title eq "db"`), &list)
	require.Len(t, list, 1)
	require.Regexp(t, "^[a-z0-9]{26}$", list[0].ID)
	var item struct{ Fields []named }
	get(vault+"/items/"+list[0].ID, &item)
	require.Len(t, item.Fields, 3)
	require.Equal(t, named{ID: "password", Label: "password", Value: "s3cret"}, item.Fields[0])
}

func TestServer_TellsItsVersion(t *testing.T) {
	s := server(t)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/vaults", nil))
	require.Equal(t, Version, w.Header().Get("1Password-Connect-Version"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
}

func TestServer_RefusesInTheWordsOfTheRealOne(t *testing.T) {
	s := server(t)
	good, other := token(t, s.Account, time.Hour, "platform"), token(t, account(t), time.Hour, "platform")
	platform, private, nowhere := "/v1/vaults/"+ID("vault", "platform"), "/v1/vaults/"+ID("vault", "private"), "/v1/vaults/"+ID("vault", "gone")
	for _, c := range []struct {
		what, token, method, path string
		status                    int
		message                   string
	}{
		{"no token", "", "GET", "/v1/vaults", 401, "Invalid bearer token"},
		{"no JWT", "abc", "GET", "/v1/vaults", 401, "Invalid bearer token"},
		{"expired", token(t, s.Account, -time.Hour, "platform"), "GET", "/v1/vaults", 401, "Invalid bearer token"},
		{"of another account", other, "GET", "/v1/vaults", 401, "Invalid token signature"},
		{"another vault", good, "GET", private, 403, "Authorization: token does not have access to vault " + ID("vault", "private")},
		{"deleted vault", token(t, s.Account, time.Hour, "*"), "GET", nowhere, 404, "vault " + ID("vault", "gone") + " not found"},
		{"missing item", good, "GET", platform + "/items/" + ID("x"), 404, "item " + ID("x") + " not found"},
		{"a name for an id", good, "GET", "/v1/vaults/platform", 400, "Invalid Vault UUID"},
		{"a name for an item", good, "GET", platform + "/items/db", 400, "Invalid Item UUID"},
		{"unknown filter", good, "GET", "/v1/vaults?filter=x", 400, "Invalid filter"},
		{"a write", good, "POST", platform + "/items", 401, "Unauthorized Request, token does not have write access to the Vault"},
	} {
		code, body := ask(t, s, c.token, c.method, c.path)
		require.Equal(t, c.status, code, c.what)
		want, err := json.Marshal(failure{c.status, c.message})
		require.NoError(t, err)
		require.JSONEq(t, string(want), body, c.what)
	}
}

func TestServer_IsHealthyBeforeTheFirstTokenAndSaysSo(t *testing.T) {
	s := server(t)
	code, body := ask(t, s, "", "GET", "/health")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"status":"TOKEN_NEEDED"`)
	code, _ = ask(t, s, "", "GET", "/heartbeat")
	require.Equal(t, 200, code)
	ask(t, s, token(t, s.Account, time.Hour, "*"), "GET", "/v1/vaults")
	_, body = ask(t, s, "", "GET", "/health")
	require.NotContains(t, body, "TOKEN_NEEDED")
}

func TestServer_SeesAChangedItemAtOnce(t *testing.T) {
	s := server(t)
	good := token(t, s.Account, time.Hour, "*")
	path := "/v1/vaults/" + ID("vault", "platform") + "/items/" + ID("item", "platform", "db")
	require.NoError(t, os.WriteFile(filepath.Join(s.Account.dir, VaultsFile), []byte(strings.Replace(content, "s3cret", "changed", 1)), 0o600))
	_, body := ask(t, s, good, "GET", path)
	require.Contains(t, body, `"value":"changed"`)
}

func TestAccount_StaysTheSame(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAccount(dir)
	require.NoError(t, err)
	saved, err := os.ReadFile(filepath.Join(dir, CredentialsFile))
	require.NoError(t, err)
	b, err := OpenAccount(dir)
	require.NoError(t, err)
	require.NoError(t, b.CheckCredentials(saved))
	require.JSONEq(t, string(a.Credentials()), string(b.Credentials()))
	text, err := os.ReadFile(filepath.Join(dir, TokenFile))
	require.NoError(t, err)
	_, err = b.verify(string(text))
	require.NoError(t, err)
	vaults, err := b.Vaults()
	require.NoError(t, err)
	require.Empty(t, vaults)
}

func TestAccount_RefusesWrongCredentials(t *testing.T) {
	a := account(t)
	for want, content := range map[string]string{
		"credentials file is not version 2":                    strings.Replace(string(a.Credentials()), `"version":"2"`, `"version":"1"`, 1),
		"failed to Decrypt localAuthv2: Authentication failed": string(account(t).Credentials()),
		"LoadLocalAuthV2 failed to Unmarshal":                  base64.StdEncoding.EncodeToString(a.Credentials()),
	} {
		require.ErrorContains(t, a.CheckCredentials([]byte(content)), want)
	}
	_, err := LoadCredentials(string(a.Credentials()))
	require.ErrorContains(t, err, "illegal base64 data at input byte 0")
	got, err := LoadCredentials(base64.StdEncoding.EncodeToString(a.Credentials()))
	require.NoError(t, err)
	require.NoError(t, a.CheckCredentials(got))
}

func TestAccount_MakesIDsInTheRealForm(t *testing.T) {
	require.Regexp(t, "^[a-z0-9]{26}$", ID("vault", "lab"))
	require.NotEqual(t, ID("a", "b"), ID("ab"))
}

func TestAccount_HasTheVaultsAndItemsThatStackFilesName(t *testing.T) {
	a, err := OpenAccount(t.TempDir())
	require.NoError(t, err)
	const vaultID, itemID = "abcdefghijklmnopqrstuvwxyz", "zbcdefghijklmnopqrstuvwxya"
	for range 2 {
		require.NoError(t, a.Require("infra", "probe", map[string]string{"password": "x"}))
		require.NoError(t, a.Require("infra", "other", map[string]string{"credential": "x"}))
		require.NoError(t, a.Require(vaultID, itemID, map[string]string{"password": "x"}))
	}
	vaults, err := a.Vaults()
	require.NoError(t, err)
	require.Len(t, vaults, 2)
	require.Len(t, vaults[0].Items, 2)
	require.NotEmpty(t, vaults[0].Items[1].Fields["credential"])

	s := &Server{Account: a, Cluster: "infra", Faults: &fault.Set{}}
	good := token(t, a, time.Hour, "*")
	for path, want := range map[string]string{
		"/v1/vaults/" + vaultID + "/items/" + itemID:                                                  `"id":"` + itemID + `"`,
		"/v1/vaults/" + ID("vault", "infra") + "/items?filter=" + url.QueryEscape(`title eq "probe"`): `"title":"probe"`,
	} {
		code, body := ask(t, s, good, "GET", path)
		require.Equal(t, 200, code, body)
		require.Contains(t, body, want)
	}

	text, err := os.ReadFile(filepath.Join(a.dir, VaultsFile))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# The vaults"), "the form is explained")
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, VaultsFile), []byte("vaults: [{name: infra, items: [{title: probe}]}]\n"), 0o600))
	require.NoError(t, a.Require("infra", "probe", map[string]string{"password": "x"}))
	vaults, err = a.Vaults()
	require.NoError(t, err)
	require.Empty(t, vaults[0].Items[0].Fields, "what somebody has changed stays")
}
