package ceph

import (
	"context"
	"crypto/subtle"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Session is a client's connection to a cluster.
type Session struct {
	cluster *Cluster
	user    string

	namespace string // RADOS namespace of its images; "" is the one without a name
}

// In returns a session of the same user in a RADOS namespace.
func (s *Session) In(namespace string) *Session { return &Session{s.cluster, s.user, namespace} }

// image returns an image in the session's namespace; nil if there is none.
func (s *Session) image(p *Pool, name string) *Image {
	if i := p.images[name]; i != nil && i.namespace == s.namespace {
		return i
	}
	return nil
}

// Connect connects to the cluster of one of the monitors, as a user such as client.admin. Like librados, it tries for as long as no
// monitor answers, or the monitors have no quorum: until ctx ends.
func (w *World) Connect(ctx context.Context, monitors []string, user, key string) (*Session, error) {
	for {
		s, err := w.tryConnect(monitors, user, key)
		if err != errNoAnswer { //nolint:errorlint // it is never wrapped
			return s, err
		}
		if !wait.Pause(ctx, pollInterval) {
			return nil, ctx.Err()
		}
	}
}

func (w *World) tryConnect(monitors []string, user, key string) (*Session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clusters {
		for _, name := range c.quorum() {
			if !slices.Contains(monitors, c.monitors[name]) {
				continue
			}
			have, exists := c.users[user]
			if !exists || subtle.ConstantTimeCompare([]byte(have.Key), []byte(key)) != 1 {
				return nil, ErrDenied
			}
			return &Session{cluster: c, user: user}, nil
		}
	}
	return nil, errNoAnswer
}

// FSID returns the id of the cluster.
func (s *Session) FSID() string { return s.cluster.FSID }

// Cluster returns the cluster, for a user that may read the monitors' status.
func (s *Session) Cluster() (*Cluster, error) {
	s.cluster.world.mu.Lock()
	defer s.cluster.world.mu.Unlock()
	if mon := s.cluster.users[s.user].Caps["mon"]; !strings.Contains(mon, "allow r") && !strings.Contains(mon, "allow *") &&
		!strings.Contains(mon, "profile rbd") {
		return nil, ErrCaps
	}
	return s.cluster, nil
}

// mayUse tells whether a capability for OSDs gives access to a pool's images in a RADOS namespace.
func mayUse(capability, pool, namespace string) bool {
	for grant := range strings.SplitSeq(capability, ",") {
		words := strings.Fields(grant)
		switch {
		case len(words) == 2 && words[0] == "allow" && words[1] == "*":
			return true
		case len(words) >= 2 && words[0] == "profile" && words[1] == "rbd":
			if !slices.ContainsFunc(words[2:], func(word string) bool { return word != "pool="+pool && word != "namespace="+namespace }) {
				return true
			}
		}
	}
	return false
}

// use calls f with a pool once the pool is active, under the world's lock. While too few hosts have OSDs, Ceph does not answer: it waits
// until ctx ends.
func (s *Session) use(ctx context.Context, name string, f func(*Pool) error) error {
	c := s.cluster
	for {
		done, err := func() (bool, error) {
			c.world.mu.Lock()
			defer c.world.mu.Unlock()
			pool := c.pools[name]
			switch {
			case !mayUse(c.users[s.user].Caps["osd"], name, s.namespace):
				return true, ErrCaps
			case pool == nil:
				return true, ErrNoPool
			case s.namespace != "" && !pool.namespaces[s.namespace]:
				return true, ErrNoSpace
			case !c.answers(pool):
				return false, nil
			}
			return true, f(pool)
		}()
		if done {
			return err
		}
		if !wait.Pause(ctx, pollInterval) {
			return ctx.Err()
		}
	}
}

// CreateImage makes the image of a name, or finds it. It returns the image's name and the pool's number.
func (s *Session) CreateImage(ctx context.Context, pool, request, prefix string, bytes int64) (image string, id int, err error) {
	err = s.use(ctx, pool, func(p *Pool) error {
		id = p.ID
		request = s.namespace + "/" + request
		if image = p.names[request]; image != "" {
			if p.images[image].Bytes != bytes {
				return ErrDiffers
			}
			return nil
		}
		image = prefix + uuid()
		dir := filepath.Join(s.cluster.world.Dir, s.cluster.FSID, image)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		p.names[request] = image
		p.images[image] = &Image{Name: image, Bytes: bytes, dir: dir, watchers: map[string]bool{}, namespace: s.namespace}
		return nil
	})
	return image, id, err
}

// PoolName returns the name of the pool with a number.
func (s *Session) PoolName(id int) (string, error) {
	s.cluster.world.mu.Lock()
	defer s.cluster.world.mu.Unlock()
	for name, pool := range s.cluster.pools {
		if pool.ID == id {
			return name, nil
		}
	}
	return "", ErrNoPool
}

// DeleteImage deletes an image that nobody has mapped.
func (s *Session) DeleteImage(ctx context.Context, pool, image string) error {
	return s.use(ctx, pool, func(p *Pool) error {
		i := s.image(p, image)
		switch {
		case i == nil:
			return ErrNoImage
		case len(i.watchers) > 0:
			return ErrWatched
		}
		if err := os.RemoveAll(i.dir); err != nil {
			return err
		}
		delete(p.images, image)
		for request, name := range p.names {
			if name == image {
				delete(p.names, request)
			}
		}
		return nil
	})
}

// Resize makes an image larger. A smaller size changes nothing.
func (s *Session) Resize(ctx context.Context, pool, image string, bytes int64) error {
	return s.use(ctx, pool, func(p *Pool) error {
		i := s.image(p, image)
		if i == nil {
			return ErrNoImage
		}
		i.Bytes = max(i.Bytes, bytes)
		return nil
	})
}

// Map maps an image on a client, and returns the folder with the files of its file system. Without shared, one client at a time may have
// it. The client's kernel connects by itself, with the key of the session's user.
func (s *Session) Map(ctx context.Context, pool, image, client string, shared bool) (dir string, err error) {
	err = s.use(ctx, pool, func(p *Pool) error {
		i := s.image(p, image)
		switch {
		case i == nil:
			return ErrNoImage
		case s.cluster.users[s.user].Type != AES:
			return ErrKeyType
		case !shared && len(i.watchers) > 0 && !i.watchers[client]:
			return ErrWatched
		}
		i.watchers[client], dir = true, i.dir
		return nil
	})
	return dir, err
}

// Unmap ends the mapping of the image with that folder on a client. It needs no monitors: a kernel can forget a device.
func (w *World) Unmap(client, dir string) {
	w.forget(client, func(i *Image) bool { return i.dir == dir })
}

// Forget ends all mappings of a client that does not exist any more.
func (w *World) Forget(client string) { w.forget(client, func(*Image) bool { return true }) }

func (w *World) forget(client string, of func(*Image) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clusters {
		for _, pool := range c.pools {
			for _, i := range pool.images {
				if of(i) {
					delete(i.watchers, client)
				}
			}
		}
	}
}
