package proxmox

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// maxDownload is the largest file that a simulated host downloads.
const maxDownload = 256 << 20

var isoName = regexp.MustCompile(`(?i)^[^/]+\.(iso|img)$`)

// checkFetch refuses a token that may not make a host access the network.
func (q *request) checkFetch() error {
	return q.token.require("/", "Sys.Audit", "Sys.Modify")
}

// fetch sends a request to the network, as a host does.
func (c *Cluster) fetch(ctx context.Context, method, address string) (*http.Response, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, invalid(map[string]string{"url": "value does not match the regex pattern"})
	}
	if c.cfg.Fetch == nil {
		return nil, internalError("invalid server response: '500 Can't connect to %s (this cluster has no network)'", u.Host)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "Proxmox VE")
	res, err := c.cfg.Fetch.Do(req)
	if err != nil {
		return nil, internalError("invalid server response: '500 Can't connect to %s (%s)'", u.Host, err)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, internalError("invalid server response: '%s'", res.Status)
	}
	return res, nil
}

// queryURL returns name, type and size of the file at a URL.
func queryURL(q *request) (any, error) {
	if err := q.checkFetch(); err != nil {
		return nil, err
	}
	address := q.form.Get("url")
	res, err := q.c.fetch(q.r.Context(), http.MethodHead, address)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out := map[string]any{}
	if _, params, err := mime.ParseMediaType(res.Header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		out["filename"] = params["filename"]
	} else {
		out["filename"] = path.Base(res.Request.URL.Path)
	}
	if res.ContentLength > 0 {
		out["size"] = res.ContentLength
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err == nil {
		out["mimetype"] = kind
	}
	return out, nil
}

// downloadURL starts the download of an ISO image to a storage.
func downloadURL(q *request) (any, error) {
	s, err := q.c.storageOn(q.r.PathValue("storage"), q.node.Name)
	if err != nil {
		return nil, err
	}
	if err := q.token.require("/storage/"+s.Name, "Datastore.AllocateTemplate"); err != nil {
		return nil, err
	}
	if err := q.checkFetch(); err != nil {
		return nil, err
	}
	content, name, address := q.form.Get("content"), q.form.Get("filename"), q.form.Get("url")
	switch {
	case !s.files():
		return nil, internalError("can't upload to storage type '%s', not a file based storage!", s.Type)
	case content != "iso" && content != "vztmpl" && content != "import":
		return nil, invalid(map[string]string{"content": "value '" + content +
			"' does not have a value in the enumeration 'iso, vztmpl, import'"})
	case !s.allows(content):
		return nil, internalError("storage '%s' is not configured for content-type '%s'", s.Name, content)
	case content != "iso":
		return nil, internalError("content-type '%s' is not modelled by this simulation", content)
	case !isoName.MatchString(name):
		return nil, invalid(map[string]string{"filename": "wrong file extension"})
	case q.form.Get("compression") != "":
		return nil, internalError("compression is not modelled by this simulation")
	}
	sum, algorithm := q.form.Get("checksum"), q.form.Get("checksum-algorithm")
	newHash, known := hashes[algorithm]
	if sum != "" && !known {
		return nil, invalid(map[string]string{"checksum-algorithm": "value '" + algorithm +
			"' does not have a value in the enumeration 'md5, sha1, sha224, sha256, sha384, sha512'"})
	}
	c := q.c
	return c.fork(job{
		node: q.node, kind: "download", id: name, token: q.token, duration: c.cfg.Latency.Download,
		work: func(ctx context.Context, t *task) error {
			target := isoDir(s) + name
			id := s.Name + ":iso/" + name
			c.mu.Lock()
			existing := c.volume(t.node, id)
			c.mu.Unlock()
			if existing != nil {
				return fmt.Errorf("refusing to override existing file '%s'", target)
			}
			t.logf("downloading %s to %s", address, target)
			data, err := c.download(ctx, address)
			if err != nil {
				return err
			}
			if sum != "" {
				h := newHash()
				h.Write(data)
				if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, sum) {
					return fmt.Errorf("checksum mismatch: got '%s' != expect '%s', aborting", got, sum)
				}
				t.logf("checksum verified")
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err := c.put(s, t.node, &volume{id: id, content: "iso", format: "iso", size: int64(len(data)), data: data}); err != nil {
				return err
			}
			t.log = append(t.log, fmt.Sprintf("download of '%s' to '%s' finished", address, target))
			return nil
		},
	})
}

var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// download downloads a file. Proxmox VE's download tool returns only an exit code and writes the reason to the log.
func (c *Cluster) download(ctx context.Context, address string) ([]byte, error) {
	res, err := c.fetch(ctx, http.MethodGet, address)
	if err != nil {
		return nil, fmt.Errorf("download failed: %w", err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxDownload+1))
	if err != nil {
		return nil, fmt.Errorf("download failed: %w", err)
	}
	if len(data) > maxDownload {
		return nil, fmt.Errorf("download failed: more than %d bytes", maxDownload)
	}
	return data, nil
}
