package connect

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// send returns status and body of an answer to a request with a body.
func send(t *testing.T, s *Server, token, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func writer(t *testing.T, s *Server, vaults ...string) string {
	t.Helper()
	text, err := s.Account.WriteToken(time.Now().Add(time.Hour), vaults...)
	require.NoError(t, err)
	return text
}

// written is what a test reads of an item.
type written struct {
	ID, Title, Category string
	Version             int
	Tags                []string
	Fields              []itemField
}

func (w written) values() map[string]string {
	values := map[string]string{}
	for _, field := range w.Fields {
		values[field.Label] = field.Value
	}
	return values
}

func read(t *testing.T, body string) (item written) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &item), body)
	return item
}

func TestServer_AnItemIsCreatedReplacedAndDeleted(t *testing.T) {
	s := server(t)
	token, items := writer(t, s, "platform"), "/v1/vaults/"+ID("vault", "platform")+"/items"
	const body = `{"title": "storage", "category": "SERVER", "vault": {"id": "platform"}, "fields": [{"label": "fsid", "value": "1"}]}`
	code, answer := send(t, s, token, "POST", items, body)
	require.Equal(t, 200, code, answer)
	made := read(t, answer)
	require.Equal(t, []any{"storage", "SERVER", 1}, []any{made.Title, made.Category, made.Version})
	require.Regexp(t, validID, made.ID)

	code, answer = send(t, s, token, "PUT", items+"/"+made.ID,
		`{"id": "`+made.ID+`", "title": "storage", "tags": ["ceph"],
			"fields": [{"label": "fsid", "value": "2"}, {"label": "key", "value": "k"}]}`)
	require.Equal(t, 200, code, answer)
	require.Equal(t, 2, read(t, answer).Version)

	_, answer = send(t, s, token, "GET", items+"/"+made.ID, "")
	item := read(t, answer)
	require.Equal(t, map[string]string{"fsid": "2", "key": "k"}, item.values(), "what was written is read")
	require.Equal(t, []any{made.ID, "storage", 2}, []any{item.ID, item.Title, item.Version}, "an item keeps its id")

	code, answer = send(t, s, token, "DELETE", items+"/"+made.ID, "")
	require.Equal(t, 204, code)
	require.Empty(t, answer)
	code, _ = send(t, s, token, "GET", items+"/"+made.ID, "")
	require.Equal(t, 404, code)
	code, _ = send(t, s, token, "GET", items+"/"+ID("item", "platform", "db"), "")
	require.Equal(t, 200, code, "the other items stay")
}

func TestServer_TwoItemsMayHaveTheSameTitle(t *testing.T) {
	s := server(t)
	token, items := writer(t, s, "*"), "/v1/vaults/"+ID("vault", "platform")+"/items"
	for range 2 {
		code, answer := send(t, s, token, "POST", items, `{"title": "storage", "category": "SERVER"}`)
		require.Equal(t, 200, code, answer)
	}
	_, answer := send(t, s, token, "GET", items+"?filter=title%20eq%20%22storage%22", "")
	var list []written
	require.NoError(t, json.Unmarshal([]byte(answer), &list))
	require.Len(t, list, 2)
	require.NotEqual(t, list[0].ID, list[1].ID)
}

func TestServer_RefusesWritesWithoutAccessAndWithoutSense(t *testing.T) {
	s := server(t)
	platform, private := "/v1/vaults/"+ID("vault", "platform"), "/v1/vaults/"+ID("vault", "private")
	good, item := writer(t, s, "platform"), platform+"/items/"+ID("item", "platform", "db")
	for what, c := range map[string]struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		"a token that reads":  {token(t, s.Account, time.Hour, "*"), "PUT", item, "{}", 401, "does not have write access"},
		"another vault":       {good, "POST", private + "/items", "{}", 403, "does not have access to vault"},
		"no JSON":             {good, "POST", platform + "/items", "x", 400, "Invalid request body"},
		"no category":         {good, "POST", platform + "/items", `{"title": "x"}`, 400, "Invalid item category"},
		"another item's body": {good, "PUT", item, `{"id": "` + ID("x") + `"}`, 400, "does not match"},
		"a missing item":      {good, "DELETE", platform + "/items/" + ID("x"), "", 404, "not found"},
	} {
		code, body := send(t, s, c.token, c.method, c.path, c.body)
		require.Equal(t, c.status, code, what)
		require.Contains(t, body, c.says, what)
	}
	_, answer := send(t, s, good, "GET", item, "")
	require.Equal(t, "s3cret", read(t, answer).values()["password"], "a refused write changes nothing")
}
