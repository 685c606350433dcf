package bucket

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what S3 has as ETag
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// minPart is the smallest part of an object that is uploaded in parts; the last one may be smaller.
const minPart = 5 << 20

// Inbox serves a bucket whose keys may write objects, at once or in parts, and may not read, list or delete them. What is written is a file
// below Folder. Its objects and parts are held in memory while they arrive.
type Inbox struct {
	Name      string // of the bucket
	AccessKey string
	ReaderKey string // another access key with the same secret key, which may also read and list; "" means none
	SecretKey string
	Region    string // "" means us-east-1
	Folder    string
	Log       *slog.Logger

	mu      sync.Mutex
	uploads map[string]*upload // by id
}

// incomplete ends the name of a file that is being written.
const incomplete = ".new"

// upload is an object of which parts have arrived.
type upload struct {
	key   string
	parts map[int][]byte
}

// Handler returns the HTTP handler.
func (i *Inbox) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "lab")
		if failed := i.answer(w, r); failed != nil {
			refuse(w, r, failed)
		}
	})
}

func (i *Inbox) answer(w http.ResponseWriter, r *http.Request) *failure {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	failed, reads := (keys{i.AccessKey, i.SecretKey, i.Region}).allow(r, time.Now()), false
	if failed != nil && failed.Code == unknownKey && i.ReaderKey != "" {
		failed = (keys{i.ReaderKey, i.SecretKey, i.Region}).allow(r, time.Now())
		reads = failed == nil
	}
	if failed != nil {
		return failed
	}
	query := r.URL.Query()
	switch in := r.Method; {
	case name != i.Name:
		return fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case reads && in == http.MethodGet && key != "":
		return i.get(w, r, key)
	case reads && in == http.MethodGet && query.Get("list-type") == "2":
		return i.list(w, r)
	case key == "":
		return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
	case in == http.MethodPut && query.Has("uploadId"):
		return i.part(w, r, key)
	case in == http.MethodPut && !query.Has("partNumber"):
		return i.put(w, r, key)
	case in == http.MethodPost && query.Has("uploads"):
		return i.begin(w, key)
	case in == http.MethodPost && query.Has("uploadId"):
		return i.complete(w, r, key)
	case in == http.MethodDelete && query.Has("uploadId"):
		return i.abort(w, r, key)
	}
	return fail(http.StatusForbidden, "AccessDenied", "Access Denied")
}

// get answers with an object.
func (i *Inbox) get(w http.ResponseWriter, r *http.Request, key string) *failure {
	content, err := os.ReadFile(filepath.Join(i.Folder, filepath.Clean("/"+key)))
	if err != nil {
		return fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	w.Header().Set("ETag", etag(content))
	w.Header().Set("Content-Type", "binary/octet-stream")
	http.ServeContent(w, r, "", time.Now(), bytes.NewReader(content))
	return nil
}

// list answers with the objects.
func (i *Inbox) list(w http.ResponseWriter, r *http.Request) *failure {
	files := map[string]listed{}
	err := filepath.WalkDir(i.Folder, func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() || strings.HasSuffix(path, incomplete) {
			return err
		}
		info, err := file.Info()
		if err != nil {
			return err
		}
		key, err := filepath.Rel(i.Folder, path)
		files[key] = newListed(info.ModTime(), etag([]byte(path)), int(info.Size()))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.Log.Error("bucket", "err", err)
		return fail(http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	}
	return list(w, r, i.Name, slices.Sorted(maps.Keys(files)), func(key string) listed { return files[key] })
}

// put stores an object.
func (i *Inbox) put(w http.ResponseWriter, r *http.Request, key string) *failure {
	content, failed := payload(r)
	if failed == nil {
		failed = i.store(key, content)
	}
	if failed == nil {
		w.Header().Set("ETag", etag(content))
	}
	return failed
}

// store writes the file of an object, all of it or nothing.
func (i *Inbox) store(key string, content []byte) *failure {
	if !filepath.IsLocal(key) || strings.HasSuffix(key, "/") {
		return fail(http.StatusNotImplemented, "NotImplemented", "The lab keeps objects as files, and this key is no path.")
	}
	path := filepath.Join(i.Folder, key)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path+incomplete, content, 0o600)
	}
	if err == nil {
		err = os.Rename(path+incomplete, path)
	}
	if err != nil {
		i.Log.Error("bucket", "err", err)
		return fail(http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
	}
	return nil
}

// begin begins an object that comes in parts.
func (i *Inbox) begin(w http.ResponseWriter, key string) *failure {
	id := rand.Text()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.uploads == nil {
		i.uploads = map[string]*upload{}
	}
	i.uploads[id] = &upload{key: key, parts: map[int][]byte{}}
	write(w, http.StatusOK, struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string   //nolint:revive // the name in S3
	}{Bucket: i.Name, Key: key, UploadId: id})
	return nil
}

// upload returns the upload that a request names. The caller holds the mutex.
func (i *Inbox) upload(r *http.Request, key string) (*upload, *failure) {
	found := i.uploads[r.URL.Query().Get("uploadId")]
	if found == nil || found.key != key {
		return nil, fail(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. "+
			"The upload ID may be invalid, or the upload may have been aborted or completed.")
	}
	return found, nil
}

// part stores a part of an object.
func (i *Inbox) part(w http.ResponseWriter, r *http.Request, key string) *failure {
	number, err := strconv.Atoi(r.URL.Query().Get("partNumber"))
	if err != nil || number < 1 || number > 10000 {
		return fail(http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
	}
	content, failed := payload(r)
	if failed != nil {
		return failed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	to, failed := i.upload(r, key)
	if failed == nil {
		to.parts[number] = content
		w.Header().Set("ETag", etag(content))
	}
	return failed
}

// complete makes an object of the parts that the request lists.
func (i *Inbox) complete(w http.ResponseWriter, r *http.Request, key string) *failure {
	body, failed := payload(r)
	if failed != nil {
		return failed
	}
	type part struct {
		PartNumber int
		ETag       string
	}
	var list struct{ Part []part }
	if err := xml.Unmarshal(body, &list); err != nil || len(list.Part) == 0 {
		return fail(http.StatusBadRequest, "MalformedXML",
			"The XML you provided was not well-formed or did not validate against our published schema")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	from, failed := i.upload(r, key)
	if failed != nil {
		return failed
	}
	if !slices.IsSortedFunc(list.Part, func(a, b part) int { return a.PartNumber - b.PartNumber }) {
		return fail(http.StatusBadRequest, "InvalidPartOrder",
			"The list of parts was not in ascending order. Parts must be ordered by part number.")
	}
	var content []byte
	for at, one := range list.Part {
		stored, arrived := from.parts[one.PartNumber]
		switch {
		case !arrived || strings.Trim(one.ETag, `"`) != strings.Trim(etag(stored), `"`):
			return fail(http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found. "+
				"The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.")
		case at < len(list.Part)-1 && len(stored) < minPart:
			return fail(http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
		}
		content = append(content, stored...)
	}
	if failed := i.store(key, content); failed != nil {
		return failed
	}
	delete(i.uploads, r.URL.Query().Get("uploadId"))
	write(w, http.StatusOK, struct {
		XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: i.Name, Key: key, ETag: etag(content)})
	return nil
}

// abort forgets an object of which parts have arrived.
func (i *Inbox) abort(w http.ResponseWriter, r *http.Request, key string) *failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, failed := i.upload(r, key); failed != nil {
		return failed
	}
	delete(i.uploads, r.URL.Query().Get("uploadId"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// etag is the ETag of an object, with its quotes.
func etag(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // what S3 has as ETag
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
