package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Images is a registry of container images whose layers are files. It answers for every host name with the same images, and accepts no
// uploads.
type Images struct {
	images []image
	blobs  map[string]content // by digest
}

// image is an image of the list.
type image struct {
	Names      []string `json:"names"`  // repositories; * stands for a part of one, e.g. installer/*
	Tags       []string `json:"tags"`   // * stands for any part of one
	Layers     []string `json:"layers"` // uncompressed archives, relative to the list
	Entrypoint []string `json:"entrypoint"`
	Env        []string `json:"env"`

	digest string // of its manifest
}

// content is what is behind a digest: a file, or a text.
type content struct {
	mediaType types.MediaType
	file      string
	text      []byte
}

// OpenImages reads lists of images, which are JSON files, and computes the digests of their layers, which takes seconds. Of images with the
// same name and tag, the first one counts.
func OpenImages(lists ...string) (*Images, error) {
	r := &Images{blobs: map[string]content{}}
	for _, list := range lists {
		if err := r.addList(list); err != nil {
			return nil, fmt.Errorf("images: %s: %w", list, err)
		}
	}
	return r, nil
}

// addList adds the images of a list.
func (r *Images) addList(list string) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var images []image
	if err := json.Unmarshal(data, &images); err != nil {
		return err
	}
	layers := map[string]v1.Descriptor{}
	for i := range images {
		one := &images[i]
		for _, name := range one.Layers {
			if _, known := layers[name]; known {
				continue
			}
			if layers[name], err = r.addFile(filepath.Join(filepath.Dir(list), name)); err != nil {
				return err
			}
		}
		if err := r.addImage(one, layers); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(one.Names, ", "), err)
		}
	}
	r.images = append(r.images, images...)
	return nil
}

// addFile adds a layer.
func (r *Images) addFile(name string) (v1.Descriptor, error) {
	f, err := os.Open(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	defer f.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err != nil {
		return v1.Descriptor{}, err
	}
	sum := v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", hash.Sum(nil))}
	d := v1.Descriptor{MediaType: types.OCIUncompressedLayer, Size: size, Digest: sum}
	r.blobs[d.Digest.String()] = content{mediaType: d.MediaType, file: name}
	return d, nil
}

// addImage adds the configuration and the manifest of an image.
func (r *Images) addImage(one *image, layers map[string]v1.Descriptor) error {
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	config := v1.ConfigFile{
		Architecture: "amd64", OS: "linux", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Entrypoint: one.Entrypoint, Env: one.Env},
	}
	for _, name := range one.Layers {
		manifest.Layers = append(manifest.Layers, layers[name])
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, layers[name].Digest) // they are not compressed
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	manifest.Config = blob{types.OCIConfigJSON, text}.descriptor()
	r.blobs[manifest.Config.Digest.String()] = content{mediaType: types.OCIConfigJSON, text: text}
	if text, err = json.Marshal(manifest); err != nil {
		return err
	}
	one.digest = digest(text).String()
	r.blobs[one.digest] = content{mediaType: types.OCIManifestSchema1, text: text}
	return nil
}

// Owns tells whether a path of the registry's API belongs to one of the images, or is the path that clients try first.
func (r *Images) Owns(path string) bool {
	if path == "/v2/" {
		return true
	}
	name, _, _, err := parse(path)
	return err == nil && slices.ContainsFunc(r.images, func(i image) bool { return matches(i.Names, name) })
}

// matches tells whether a name is one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		is, err := path.Match(p, name)
		return err == nil && is
	})
}

// parse splits a path of the API into repository, kind (manifests or blobs) and reference.
func parse(of string) (name, kind, reference string, err error) {
	rest, is := strings.CutPrefix(of, "/v2/")
	parts := strings.Split(rest, "/")
	if !is || len(parts) < 3 {
		return "", "", "", errors.New("no repository")
	}
	n := len(parts) - 2
	return strings.Join(parts[:n], "/"), parts[n], parts[n+1], nil
}

// ServeHTTP implements the part of the registry's API that pulls images.
func (r *Images) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.URL.Path == "/v2/" {
		return
	}
	found, err := r.find(q.URL.Path)
	if err != nil {
		notFound(w, err)
		return
	}
	w.Header().Set("Content-Type", string(found.mediaType))
	w.Header().Set("Docker-Content-Digest", found.digest)
	w.Header().Set("Etag", `"`+found.digest+`"`) // a guest that lost its connection goes on where it was
	if found.file != "" {
		http.ServeFile(w, q, found.file)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(found.text)))
	if q.Method != http.MethodHead {
		_, _ = w.Write(found.text)
	}
}

// refusal is an error of the API: its code is MANIFEST_UNKNOWN and the like.
type refusal struct{ code, text string }

func (r refusal) Error() string { return r.text }

func notFound(w http.ResponseWriter, err error) {
	var as refusal
	errors.As(err, &as)
	refuse(w, http.StatusNotFound, cmp.Or(as.code, "UNKNOWN"), err.Error())
}

// found is a content with its digest.
type found struct {
	content
	digest string
}

// find finds what a path names.
func (r *Images) find(at string) (found, error) {
	name, kind, reference, err := parse(at)
	if err != nil {
		return found{}, refusal{"NAME_INVALID", err.Error()}
	}
	if kind == "blobs" {
		if blob, known := r.blobs[reference]; known {
			return found{blob, reference}, nil
		}
		return found{}, refusal{"BLOB_UNKNOWN", "the lab has no blob " + reference}
	}
	known := false
	for _, one := range r.images {
		if !matches(one.Names, name) {
			continue
		}
		known = true
		if reference == one.digest || matches(one.Tags, reference) {
			return found{r.blobs[one.digest], one.digest}, nil
		}
	}
	if !known {
		return found{}, refusal{"NAME_UNKNOWN", "the lab has no image " + name}
	}
	return found{}, refusal{"MANIFEST_UNKNOWN", "the lab has no " + name + ":" + reference}
}
