// Package bucket is the lab's object storage: two parts of S3's API, with the checks of Amazon's signature version 4 and S3's errors. A
// Server has the files of a Git commit, which clients read; an Inbox takes what they write. Buckets are addressed by path
// (https://HOST/BUCKET/KEY). gofakes3 cannot take its place, because it verifies no signatures. Not modelled: versions, delimiters,
// presigned URLs, chunks with signatures, policies, several users.
package bucket

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/git"
)

// PublicName is the bucket that everybody can read.
const PublicName = "public"

// region is the one that S3 has for buckets without a location.
const region = "us-east-1"

// maxKeys is how many objects S3 lists in one answer.
const maxKeys = 1000

// Server serves a bucket with the files of the newest commit, which it reads whenever somebody lists the bucket, and PublicName with the
// same files.
type Server struct {
	Name      string // of the bucket
	AccessKey string
	SecretKey string
	Public    bool // everybody can read Name, too
	Snapshot  func(context.Context) (*git.Snapshot, error)
	Log       *slog.Logger

	mu      sync.Mutex
	commit  string
	changed time.Time
	keys    []string // sorted
	objects map[string]object
}

type object struct {
	content []byte
	etag    string // with quotes
}

// failure is an error of S3.
type failure struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Region    string `xml:",omitempty"` // the right one
	Resource  string
	RequestID string `xml:"RequestId"`

	status int
}

func fail(status int, code, message string) *failure {
	return &failure{status: status, Code: code, Message: message}
}

// Handler returns the HTTP handler.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "lab")
		name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		failed := s.allowed(r, name)
		switch {
		case failed != nil:
		case name != s.Name && name != PublicName:
			failed = fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			failed = fail(http.StatusForbidden, "AccessDenied", "Access Denied")
		case key != "":
			failed = s.object(w, r, key)
		case r.Method == http.MethodHead:
			w.Header().Set("X-Amz-Bucket-Region", region)
		default:
			failed = s.bucket(w, r, name)
		}
		if failed != nil {
			refuse(w, r, failed)
		}
	})
}

// allowed returns S3's error for a request whose signature is missing or wrong. Everybody may read a public bucket without one, but a
// signature is checked there, too.
func (s *Server) allowed(r *http.Request, name string) *failure {
	if r.Header.Get("Authorization") == "" && (name == PublicName || s.Public && name == s.Name) {
		return nil
	}
	return keys{access: s.AccessKey, secret: s.SecretKey}.allow(r, time.Now())
}

// refuse answers with an error. To HEAD, S3 gives the status only.
func refuse(w http.ResponseWriter, r *http.Request, failed *failure) {
	failed.Resource, failed.RequestID = r.URL.Path, strconv.FormatInt(time.Now().UnixNano(), 16)
	w.Header().Set("X-Amz-Request-Id", failed.RequestID)
	write(w, failed.status, failed)
}

func write(w http.ResponseWriter, status int, value any) {
	text, err := xml.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...))
}

// read returns the objects. If they must be fresh, it looks for a newer commit.
func (s *Server) read(ctx context.Context, fresh bool) (keys []string, objects map[string]object, changed time.Time, failed *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fresh && s.objects != nil {
		return s.keys, s.objects, s.changed, nil
	}
	newest, err := s.Snapshot(ctx)
	if err != nil {
		s.Log.Error("bucket", "err", err)
		return nil, nil, time.Time{}, fail(http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	}
	if newest.Commit != s.commit || s.objects == nil {
		s.commit, s.changed, s.keys, s.objects = newest.Commit, newest.Time.UTC(), nil, map[string]object{}
		for _, file := range newest.Files {
			s.keys = append(s.keys, file.Path)
			s.objects[file.Path] = object{content: file.Content, etag: etag(file.Content)}
		}
		slices.Sort(s.keys)
	}
	return s.keys, s.objects, s.changed, nil
}

// object answers with an object. It knows conditions and ranges.
func (s *Server) object(w http.ResponseWriter, r *http.Request, key string) *failure {
	_, objects, changed, failed := s.read(r.Context(), false)
	if failed != nil {
		return failed
	}
	found, exists := objects[key]
	if !exists {
		return fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	w.Header().Set("ETag", found.etag)
	w.Header().Set("Content-Type", "binary/octet-stream")
	http.ServeContent(w, r, "", changed, bytes.NewReader(found.content))
	return nil
}

// bucket answers a request about the bucket: its location, or a list of its objects.
func (s *Server) bucket(w http.ResponseWriter, r *http.Request, name string) *failure {
	query := r.URL.Query()
	switch {
	case query.Has("location"):
		write(w, http.StatusOK, struct { // us-east-1 is the location of a bucket without one
			XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
		}{})
		return nil
	case query.Get("list-type") != "2" || query.Get("delimiter") != "":
		return fail(http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented.")
	}
	keys, objects, changed, failed := s.read(r.Context(), query.Get("continuation-token") == "")
	if failed != nil {
		return failed
	}
	return list(w, r, name, keys, func(key string) listed { return newListed(changed, objects[key].etag, len(objects[key].content)) })
}

type listing struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	KeyCount, MaxKeys     int
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
}

type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
	StorageClass string
}

func newListed(changed time.Time, etag string, size int) listed {
	return listed{LastModified: changed.UTC().Format("2006-01-02T15:04:05.000Z"), ETag: etag, Size: size, StorageClass: "STANDARD"}
}

// list answers with the objects whose keys, which are sorted, have a prefix: at most maxKeys, from where the continuation token says.
func list(w http.ResponseWriter, r *http.Request, name string, keys []string, describe func(key string) listed) *failure {
	query := r.URL.Query()
	token, after := query.Get("continuation-token"), query.Get("start-after")
	if token != "" {
		text, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return fail(http.StatusBadRequest, "InvalidArgument", "The continuation token provided is incorrect")
		}
		after = string(text)
	}
	answer := listing{Name: name, MaxKeys: maxKeys, EncodingType: query.Get("encoding-type"), ContinuationToken: token}
	if text := query.Get("max-keys"); text != "" {
		asked, err := strconv.Atoi(text)
		if err != nil || asked < 0 {
			return fail(http.StatusBadRequest, "InvalidArgument", "Provided max-keys not an integer or within integer range")
		}
		answer.MaxKeys = min(asked, maxKeys)
	}
	encode := func(key string) string { return key }
	if answer.EncodingType == "url" {
		encode = func(key string) string { return escape(key, false) }
	}
	answer.Prefix = encode(query.Get("prefix"))
	from, _ := slices.BinarySearch(keys, after)
	for _, key := range keys[from:] {
		if key == after || !strings.HasPrefix(key, query.Get("prefix")) {
			continue
		}
		if len(answer.Contents) == answer.MaxKeys {
			if answer.MaxKeys > 0 {
				answer.IsTruncated, answer.NextContinuationToken = true, base64.URLEncoding.EncodeToString([]byte(after))
			}
			break
		}
		after = key
		found := describe(key)
		found.Key = encode(key)
		answer.Contents = append(answer.Contents, found)
	}
	answer.KeyCount = len(answer.Contents)
	write(w, http.StatusOK, answer)
	return nil
}
