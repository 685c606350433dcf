// Package buckettest serves a bucket in memory to tests.
package buckettest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/cluster"
)

// Server is a server of one bucket, over http. The zero Server is empty and ready for use. It checks no signatures, and knows no objects
// that come in parts.
type Server struct {
	// OnRequest, if non-nil, returns the code of S3's error for a request; "" for none.
	OnRequest func(r *http.Request) string

	mu      sync.Mutex
	objects map[string]object
}

type object struct {
	content []byte
	changed time.Time
}

// Start serves the bucket until the test ends.
func (s *Server) Start(t testing.TB) *cluster.S3Bucket {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &cluster.S3Bucket{Endpoint: server.URL, Name: "etcd", Region: "us-east-1", AccessKey: "ACCESS", SecretKey: "SECRET-KEY"}
}

// Put adds an object.
func (s *Server) Put(key string, content []byte, changed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[string]object{}
	}
	s.objects[key] = object{content, changed}
}

// Object returns the content of an object; nil if there is none.
func (s *Server) Object(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key].content
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, inBucket := strings.CutPrefix(r.URL.Path, "/etcd/")
	if s.OnRequest != nil {
		if code := s.OnRequest(r); code != "" {
			refuse(w, code)
			return
		}
	}
	switch content := s.Object(key); {
	case !inBucket:
		refuse(w, "NoSuchBucket")
	case key == "":
		s.list(w, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut:
		content, _ = io.ReadAll(r.Body) // a shorter one shows in the test
		s.Put(key, content, time.Now())
	case content == nil:
		refuse(w, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(content))
	}
}

func refuse(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>The server says no.</Message></Error>", code)
}

func (s *Server) list(w io.Writer, prefix string) {
	type entry struct{ Key, LastModified string }
	answer := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []entry
	}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(key, prefix) {
			answer.Contents = append(answer.Contents, entry{key, s.objects[key].changed.UTC().Format(time.RFC3339)})
		}
	}
	_ = xml.NewEncoder(w).Encode(answer) // a missing answer shows in the test
}
