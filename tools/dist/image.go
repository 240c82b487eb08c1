package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	nobody    = 65532 // by custom, the user of images that need none
	program   = "usr/bin/urlserver"
	sharing   = "usr/bin/hostreservation"
	fetching  = "usr/bin/urlserver-spider"
	settings  = "etc/urlserver/urlserver.toml"
	authority = "etc/ssl/certs/ca-certificates.crt" // robots.txt and doc indexes come over https, too
	state     = "var/lib/urlserver"
)

// imageOf says what an image is made of.
type imageOf struct {
	daemon, service, spider, settings string // files: the daemon is what the image runs, unless told otherwise
	version                           string
	arch                              string // as GOARCH has it
	made                              time.Time
}

// writeImage writes an image in the layout of OCI, as one tar file.
func writeImage(of imageOf, out string) error {
	image, err := of.build()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "urlserver-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: of.arch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "urlserver"}))
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := tarFolder(file, os.DirFS(dir), of.made); err != nil {
		return err
	}
	return file.Close()
}

func (of imageOf) build() (v1.Image, error) {
	text, err := of.files()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: of.made}, CreatedBy: "make dist"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", of.arch, v1.Time{Time: of.made}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", nobody, nobody),
		WorkingDir:   "/" + state,
		Entrypoint:   []string{"/" + program},
		Cmd:          []string{"serve", "/" + settings},
		ExposedPorts: map[string]struct{}{"4101/tcp": {}, "8080/tcp": {}, "7071/tcp": {}, "7072/tcp": {}},
		Volumes:      map[string]struct{}{"/" + state: {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "urlserver", "org.opencontainers.image.version": of.version,
		},
	}
	return mutate.ConfigFile(image, config)
}

// files is all that is in the image, as tar.
func (of imageOf) files() ([]byte, error) {
	daemon, err := os.ReadFile(of.daemon)
	if err != nil {
		return nil, err
	}
	service, err := os.ReadFile(of.service)
	if err != nil {
		return nil, err
	}
	spider, err := os.ReadFile(of.spider)
	if err != nil {
		return nil, err
	}
	sample, err := os.ReadFile(of.settings)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name  string
		mode  int64
		owner int
		text  []byte // nil: a folder
	}{
		{name: "etc/", mode: 0o755},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: authority, mode: 0o644, text: authorities()},
		{name: "etc/urlserver/", mode: 0o755},
		{name: settings, mode: 0o644, text: sample},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: sharing, mode: 0o755, text: service},
		{name: program, mode: 0o755, text: daemon},
		{name: fetching, mode: 0o755, text: spider},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: state + "/", mode: 0o750, owner: nobody},
	} {
		header := tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner,
			Size: int64(len(f.text)), ModTime: of.made, Typeflag: tar.TypeReg}
		if f.text == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// authorities are those that Mozilla trusts, without those that it trusts with reservations.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer does not fail
		}
	}
	return out.Bytes()
}
