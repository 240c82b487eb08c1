package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var image = flag.String("image", "",
	"an image that scripts/dist made for this machine: it is read back, and its binary run")

// own is this test's binary: one made by Go, as good as any.
func own(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSBOM(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	var texts [2][]byte
	for i := range texts {
		out := filepath.Join(t.TempDir(), "sbom.json")
		if err := run([]string{"sbom", own(t), "v1.2.3+4", out}); err != nil {
			t.Fatal(err)
		}
		texts[i], _ = os.ReadFile(out)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two SBOMs of one binary differ")
	}
	var bom struct {
		BOMFormat string
		Metadata  struct{ Timestamp string }
	}
	if err := json.Unmarshal(texts[0], &bom); err != nil || bom.BOMFormat != "CycloneDX" ||
		bom.Metadata.Timestamp != "2001-09-09T01:46:40Z" {
		t.Errorf("%+v, %v", bom, err)
	}
	for _, want := range []string{`"pkg:golang/urlserver/tools@v1.2.3%2B4"`, `"pkg:golang/std@1.`,
		`"pkg:golang/github.com/google/go-containerregistry@v0.`} {
		if !strings.Contains(string(texts[0]), want) {
			t.Errorf("the SBOM lacks %s", want)
		}
	}
}

func TestImage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	dir := t.TempDir()
	sample := filepath.Join(dir, "sample.toml")
	if err := os.WriteFile(sample, []byte("# settings\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i := range texts {
		out := filepath.Join(dir, fmt.Sprint(i))
		if err := run([]string{"image", own(t), own(t), own(t), "v1", sample, "amd64", out}); err != nil {
			t.Fatal(err)
		}
		texts[i], _ = os.ReadFile(out)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two images of one binary differ")
	}
	root, _ := readBack(t, filepath.Join(dir, "0"))
	if text, err := os.ReadFile(filepath.Join(root, settings)); string(text) != "# settings\n" {
		t.Errorf("the settings are %q, %v", text, err)
	}
	if text, _ := os.ReadFile(filepath.Join(root, authority)); bytes.Count(text, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("%d bytes of certificate authorities", len(text))
	}
}

// TestMadeImage is for scripts/dist-test.
func TestMadeImage(t *testing.T) {
	if *image == "" {
		t.Skip("no -image: scripts/dist-test gives one")
	}
	root, config := readBack(t, *image)
	tokens := []string{"URLSERVER_HTTP_TOKEN=0123456789abcdef", "URLSERVER_SPIDER_TOKEN=0123456789abcdef"}
	for _, c := range []struct {
		args    []string
		environ []string
		fails   bool
	}{
		{args: []string{program, "version"}},
		// others reach it, and it has no tokens
		{args: []string{program, "check", filepath.Join(root, settings)}, fails: true},
		{args: []string{program, "check", filepath.Join(root, settings)}, environ: tokens},
		{args: []string{sharing, "version"}},
		{args: []string{fetching, "--help"}},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, c.args[0]), c.args[1:]...)
		cmd.Env = c.environ
		out, err := cmd.CombinedOutput()
		if (err != nil) != c.fails {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
		t.Logf("%s", out)
	}
	t.Run("started", func(t *testing.T) { started(t, root, config) })
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"sbom"}, {"image", "a", "b"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage: ") {
			t.Errorf("run(%q): %v; want how to use it", args, err)
		}
	}
}

// readBack unpacks an image, checks it, and returns where its files are, and how it is to be run.
func readBack(t *testing.T, file string) (root string, runs v1.Config) {
	t.Helper()
	dir, root := t.TempDir(), t.TempDir()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	unpack(t, text, dir)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].MediaType != types.OCIManifestSchema1 {
		t.Fatalf("index %+v, %v; want one OCI image", manifest, err)
	}
	one, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := one.ConfigFile()
	if err != nil || config.OS != "linux" || config.Config.User != "65532:65532" ||
		strings.Join(config.Config.Entrypoint, " ") != "/"+program {
		t.Errorf("config %+v, %v", config, err)
	}
	files := mutate.Extract(one)
	defer files.Close()
	unpack(t, files, root)
	return root, config.Config
}

func unpack(t *testing.T, in io.Reader, dir string) {
	t.Helper()
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err = os.MkdirAll(name, 0o755); err == nil && os.Getuid() == 0 {
				err = errors.Join(os.Chmod(name, os.FileMode(h.Mode)), os.Chown(name, h.Uid, h.Gid))
			}
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, text, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
