package bucket

import (
	"context"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/git"
)

// server serves a bucket of a snapshot, which can change.
func server(t *testing.T) (newest *git.Snapshot, s *Server, address string) {
	t.Helper()
	newest = &git.Snapshot{Commit: "a", Time: time.Unix(1700000000, 0), Files: []git.File{
		{Path: "kubernetes/a b+c.yaml", Content: []byte("one")}, {Path: "kubernetes/d.yaml", Content: []byte("two")},
		{Path: "x", Content: []byte("three")},
	}}
	s = &Server{Name: "platform", AccessKey: "flux", SecretKey: "right", Log: slog.New(slog.DiscardHandler),
		Snapshot: func(context.Context) (*git.Snapshot, error) { copied := *newest; return &copied, nil }}
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(listener.Close)
	return newest, s, listener.URL
}

// unsigned makes a request.
func unsigned(t *testing.T, method, address string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	require.NoError(t, err)
	return request
}

// signed makes a request that is signed with keys at a time.
func signed(t *testing.T, method, address, accessKey, secretKey string, at time.Time) *http.Request {
	t.Helper()
	request := unsigned(t, method, address)
	at = at.UTC()
	request.Header.Set("X-Amz-Date", at.Format(timeFormat))
	request.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	given := authorization{
		accessKey: accessKey, date: at.Format("20060102"), region: region, headers: []string{"host", "x-amz-content-sha256", "x-amz-date"},
	}
	request.Host = request.URL.Host
	signature := sign(request, given, at, "UNSIGNED-PAYLOAD", secretKey)
	request.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, Signature=%s",
		algorithm, accessKey, given.date, region, strings.Join(given.headers, ";"), signature))
	return request
}

func good(t *testing.T, method, address string) *http.Request {
	t.Helper()
	return signed(t, method, address, "flux", "right", time.Now())
}

func do(t *testing.T, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// refused does a request that must fail, and returns S3's code.
func refused(t *testing.T, request *http.Request, status int) string {
	t.Helper()
	response, body := do(t, request)
	require.Equal(t, status, response.StatusCode, body)
	var failed failure
	require.NoError(t, xml.Unmarshal([]byte(body), &failed))
	require.NotEmpty(t, failed.Message)
	return failed.Code
}

// The examples are those of Amazon's reference of S3's API, "Signature Calculations for the Authorization Header".
func TestSign_GivesTheSignaturesOfAmazonsExamples(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	const rest = "x-amz-content-sha256;x-amz-date"
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, one := range []struct{ path, bytes, headers, want string }{
		{"/test.txt", "bytes=0-9", "host;range;" + rest, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"/?lifecycle", "", "host;" + rest, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"/?max-keys=2&prefix=J", "", "host;" + rest, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		request := httptest.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com"+one.path, nil)
		request.Header.Set("X-Amz-Date", at.Format(timeFormat))
		request.Header.Set("X-Amz-Content-Sha256", empty)
		if one.bytes != "" {
			request.Header.Set("Range", one.bytes)
		}
		given := authorization{date: "20130524", region: region, headers: strings.Split(one.headers, ";")}
		require.Equal(t, one.want, sign(request, given, at, empty, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), one.path)
	}
}

func TestServer_ChecksTheSignature(t *testing.T) {
	_, s, address := server(t)
	object := address + "/platform/x"
	response, body := do(t, good(t, http.MethodGet, object))
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	require.Equal(t, "three", body)

	now := time.Now()
	for want, request := range map[string]*http.Request{
		"SignatureDoesNotMatch": signed(t, http.MethodGet, object, "flux", "wrong", now),
		"InvalidAccessKeyId":    signed(t, http.MethodGet, object, "other", "right", now),
		"RequestTimeTooSkewed":  signed(t, http.MethodGet, object, "flux", "right", now.Add(-time.Hour)),
		"AccessDenied":          unsigned(t, http.MethodGet, object),
	} {
		require.Equal(t, want, refused(t, request, http.StatusForbidden))
	}
	for header, value := range map[string]string{
		"X-Amz-Date": now.UTC().Add(time.Minute).Format(timeFormat), "X-Amz-Content-Sha256": hex.EncodeToString(make([]byte, 32)),
	} {
		changed := good(t, http.MethodGet, object)
		changed.Header.Set(header, value)
		require.Equal(t, "SignatureDoesNotMatch", refused(t, changed, http.StatusForbidden), header)
	}
	moved := good(t, http.MethodGet, object)
	moved.URL.Path = "/platform/kubernetes/d.yaml"
	require.Equal(t, "SignatureDoesNotMatch", refused(t, moved, http.StatusForbidden))
	elsewhere := good(t, http.MethodGet, object)
	elsewhere.Header.Set("Authorization", strings.Replace(elsewhere.Header.Get("Authorization"), region, "eu-central-1", 1))
	require.Equal(t, "AuthorizationHeaderMalformed", refused(t, elsewhere, http.StatusBadRequest))
	odd := good(t, http.MethodGet, object)
	odd.Header.Set("Authorization", algorithm+" Credential=flux")
	require.Equal(t, "AuthorizationHeaderMalformed", refused(t, odd, http.StatusBadRequest))

	response, _ = do(t, unsigned(t, http.MethodGet, address+"/public/x"))
	require.Equal(t, http.StatusOK, response.StatusCode)
	wrong := signed(t, http.MethodGet, address+"/public/x", "flux", "wrong", now)
	require.Equal(t, "SignatureDoesNotMatch", refused(t, wrong, http.StatusForbidden))
	s.Public = true
	response, _ = do(t, unsigned(t, http.MethodGet, object))
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestServer_AnswersAsS3ForWhatIsAbsentAndForWrites(t *testing.T) {
	_, _, address := server(t)
	require.Equal(t, "NoSuchBucket", refused(t, good(t, http.MethodGet, address+"/other/?list-type=2"), http.StatusNotFound))
	require.Equal(t, "NoSuchKey", refused(t, good(t, http.MethodGet, address+"/platform/absent"), http.StatusNotFound))
	require.Equal(t, "AccessDenied", refused(t, good(t, http.MethodPut, address+"/platform/x"), http.StatusForbidden))
	folders := good(t, http.MethodGet, address+"/platform/?list-type=2&delimiter=%2F")
	require.Equal(t, "NotImplemented", refused(t, folders, http.StatusNotImplemented))
	for path, status := range map[string]int{
		"/platform/": 200, "/platform": 200, "/other/": 404, "/platform/x": 200, "/platform/absent": 404,
	} {
		response, body := do(t, good(t, http.MethodHead, address+path))
		require.Equal(t, status, response.StatusCode, path)
		require.Empty(t, body)
	}
	response, body := do(t, good(t, http.MethodGet, address+"/platform/?location="))
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, "LocationConstraint")
}

func TestServer_AnObjectHasItsETagAndKnowsConditions(t *testing.T) {
	_, _, address := server(t)
	object := address + "/platform/kubernetes/a%20b%2Bc.yaml"
	response, body := do(t, good(t, http.MethodGet, object))
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	require.Equal(t, "one", body)
	require.Equal(t, `"f97c5d29941bfb1b2fdab0874906ab82"`, response.Header.Get("ETag"), "the MD5 of its content")
	require.NotEmpty(t, response.Header.Get("Last-Modified"))
	changed := good(t, http.MethodGet, object)
	changed.Header.Set("If-Match", `"other"`)
	response, _ = do(t, changed)
	require.Equal(t, http.StatusPreconditionFailed, response.StatusCode)
	part := good(t, http.MethodGet, object)
	part.Header.Set("Range", "bytes=1-")
	response, body = do(t, part)
	require.Equal(t, http.StatusPartialContent, response.StatusCode)
	require.Equal(t, "ne", body)
}

func TestServer_ListsAllObjectsPageByPage(t *testing.T) {
	newest, _, address := server(t)
	page := func(query url.Values) listing {
		query.Set("list-type", "2")
		response, body := do(t, good(t, http.MethodGet, address+"/platform/?"+query.Encode()))
		require.Equal(t, http.StatusOK, response.StatusCode, body)
		var got listing
		require.NoError(t, xml.Unmarshal([]byte(body), &got))
		require.Equal(t, len(got.Contents), got.KeyCount)
		return got
	}
	keys := func(got listing) (keys []string) {
		for _, one := range got.Contents {
			keys = append(keys, one.Key)
		}
		return keys
	}
	require.Equal(t, []string{"kubernetes/a b+c.yaml", "kubernetes/d.yaml", "x"}, keys(page(url.Values{})))
	require.Equal(t, []string{"kubernetes/a%20b%2Bc.yaml", "kubernetes/d.yaml"},
		keys(page(url.Values{"prefix": {"kubernetes/"}, "encoding-type": {"url"}})))
	require.Equal(t, []string{"x"}, keys(page(url.Values{"start-after": {"kubernetes/d.yaml"}})))
	first := page(url.Values{"max-keys": {"2"}})
	require.True(t, first.IsTruncated)
	require.Len(t, first.Contents, 2)
	second := page(url.Values{"max-keys": {"2"}, "continuation-token": {first.NextContinuationToken}})
	require.False(t, second.IsTruncated)
	require.Empty(t, second.NextContinuationToken)
	require.Equal(t, []string{"x"}, keys(second))

	newest.Commit, newest.Files = "b", nil
	for i := range maxKeys + 1 {
		newest.Files = append(newest.Files, git.File{Path: fmt.Sprintf("%04d", i)})
	}
	all := page(url.Values{})
	require.Len(t, all.Contents, maxKeys, "the newest commit, and not more than S3 gives at once")
	require.True(t, all.IsTruncated)
	require.Equal(t, []string{"1000"}, keys(page(url.Values{"continuation-token": {all.NextContinuationToken}})))
	odd := good(t, http.MethodGet, address+"/platform/?list-type=2&continuation-token=%21")
	require.Equal(t, "InvalidArgument", refused(t, odd, http.StatusBadRequest))
}
