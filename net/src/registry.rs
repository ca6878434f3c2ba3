//! Guests as OCI artifacts, in the layout of the CNCF for WebAssembly.
//!
//! The manifest has a config of `application/vnd.wasm.config.v0+json` and one layer of `application/wasm`; a signature of
//! minisign over the layer's bytes is the manifest's annotation [`SIGNATURE`], so that other tools find the layout they know.
//! Sizes are bounded before and while bytes come, digests are checked by the client library, media types here. Credentials are
//! those of docker's configuration, and are never sent without TLS, except to this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use anyhow::{Context as _, Result, anyhow, bail};
use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::client::{ClientConfig, ClientProtocol, Config, ImageLayer};
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest, OciManifest};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWrite;

use crate::transport::{CONNECT_TIMEOUT, READ_TIMEOUT, is_loopback};

/// The annotation with the text of a `.minisig` file.
const SIGNATURE: &str = "io.github.omc-host.minisig";

/// Media types of the layer: the CNCF's, and the one that tools used before.
const LAYER_TYPES: [&str; 2] = ["application/wasm", "application/vnd.wasm.content.layer.v1+wasm"];
/// Media types of the config, likewise.
const CONFIG_TYPES: [&str; 2] = ["application/vnd.wasm.config.v0+json", "application/vnd.wasm.config.v1+json"];

/// Largest component, in bytes: what the host reads.
const MAX_COMPONENT_BYTES: usize = 128 * 1024 * 1024;
/// Largest signature, in bytes: what the host reads.
const MAX_SIGNATURE_BYTES: usize = 4 * 1024;
/// Largest description of a component on standard input, in bytes.
const MAX_ABOUT_BYTES: u64 = 1024 * 1024;

/// What the config says about a component.
#[derive(Deserialize)]
struct About {
    /// When, in RFC 3339.
    created: String,
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Fetches a component and its signature into a folder; gives the artifact's digest.
pub(crate) async fn pull(text: &str, folder: &Path, plain_http: bool) -> Result<Value> {
    let place = Place::parse(text, plain_http)?;
    let (manifest, digest) = place
        .client
        .pull_manifest(&place.reference, &place.auth)
        .await
        .map_err(explain)
        .context("failed to read the manifest")?;
    let OciManifest::Image(manifest) = manifest else {
        bail!("this is an index of several artifacts; name one of them by its digest");
    };
    let layer = layer(&manifest)?;
    let mut bytes = Capped { bytes: Vec::new(), limit: usize::try_from(layer.size)? };
    place
        .client
        .pull_blob(&place.reference, layer, &mut bytes)
        .await
        .map_err(explain)
        .context("failed to read the component")?;
    let signature = manifest.annotations.as_ref().and_then(|annotations| annotations.get(SIGNATURE));
    if signature.is_some_and(|signature| signature.len() > MAX_SIGNATURE_BYTES) {
        bail!("its signature is larger than {MAX_SIGNATURE_BYTES} bytes");
    }
    let file = folder.join("guest.wasm");
    fs::write(&file, &bytes.bytes).with_context(|| format!("failed to write `{}`", file.display()))?;
    if let Some(signature) = signature {
        let file = folder.join("guest.wasm.minisig");
        fs::write(&file, signature).with_context(|| format!("failed to write `{}`", file.display()))?;
    }
    Ok(json!({ "digest": digest }))
}

/// The one layer that is a component.
fn layer(manifest: &OciImageManifest) -> Result<&OciDescriptor> {
    let types: Vec<_> = manifest.layers.iter().map(|layer| layer.media_type.as_str()).take(8).collect();
    let config = manifest.config.media_type.as_str();
    if !CONFIG_TYPES.contains(&config) {
        bail!("this is no WebAssembly artifact: its config is of the type `{config}`");
    }
    let [layer] = manifest.layers.as_slice() else {
        bail!("this is no guest: it has {} layers ({}), and a guest has one", manifest.layers.len(), types.join(", "));
    };
    if !LAYER_TYPES.contains(&layer.media_type.as_str()) {
        bail!("this is no guest: its layer is of the type `{}`", layer.media_type);
    }
    match usize::try_from(layer.size) {
        Ok(1..=MAX_COMPONENT_BYTES) => Ok(layer),
        _ => bail!("its component has {} bytes, and a guest 1 to {MAX_COMPONENT_BYTES}", layer.size),
    }
}

/// Publishes a component; gives the artifact's digest.
pub(crate) async fn push(file: &Path, text: &str, plain_http: bool) -> Result<Value> {
    let place = Place::parse(text, plain_http)?;
    if place.reference.digest().is_some() {
        bail!("a digest comes out of publishing; name a tag instead");
    }
    let About { created, imports, exports } = serde_json::from_reader(io::stdin().lock().take(MAX_ABOUT_BYTES))
        .context("failed to read what to say about it")?;
    let component = fs::read(file).with_context(|| format!("failed to read `{}`", file.display()))?;
    let layer = ImageLayer::new(component, LAYER_TYPES[0].to_owned(), None);
    let config = json!({
        "created": created,
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer.sha256_digest()],
        "component": { "imports": imports, "exports": exports },
    });
    let config = Config::new(config.to_string().into_bytes(), CONFIG_TYPES[0].to_owned(), None);
    let mut signature = file.as_os_str().to_owned();
    signature.push(".minisig");
    let annotations = match fs::read_to_string(&signature) {
        Ok(text) => Some(BTreeMap::from([(SIGNATURE.to_owned(), text)])),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(error).with_context(|| format!("failed to read `{}`", Path::new(&signature).display()));
        }
    };
    let layers = [layer];
    let mut manifest = OciImageManifest::build(&layers, &config, annotations);
    manifest.media_type = Some(OCI_IMAGE_MEDIA_TYPE.to_owned());
    let (auth, reference) = (&place.auth, &place.reference);
    // The library writes manifests in a form of JSON in which a text has no line ends, and a signature has some.
    let manifest = serde_json::to_vec(&manifest).context("failed to write the manifest")?;
    let [layer] = layers;
    place.client.store_auth_if_needed(reference.resolve_registry(), auth).await;
    for (digest, data) in [(layer.sha256_digest(), layer.data), (config.sha256_digest(), config.data)] {
        place.client.push_blob(reference, data, &digest).await.map_err(explain)?;
    }
    let media_type = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
    place.client.push_manifest_raw(reference, manifest, media_type).await.map_err(explain)?;
    let digest = place.client.fetch_manifest_digest(reference, auth).await.map_err(explain)?;
    Ok(json!({ "digest": digest }))
}

/// A registry, and how to speak to it.
struct Place {
    reference: Reference,
    client: Client,
    auth: RegistryAuth,
}

impl Place {
    fn parse(text: &str, plain_http: bool) -> Result<Self> {
        let reference: Reference =
            text.parse().map_err(|error| anyhow!("`{text}` is no reference ({error}); write HOST/NAME:TAG"))?;
        // A name without a host would mean a registry that nobody named.
        let first = text.split('/').next().unwrap_or_default();
        if !text.contains('/') || !(first.contains(['.', ':']) || first == "localhost") {
            bail!("`{text}` names no host; write HOST/NAME:TAG");
        }
        let registry = reference.resolve_registry().to_owned();
        let host = registry.rsplit_once(':').map_or(registry.as_str(), |(host, _)| host);
        let is_local = is_loopback(host);
        let protocol = if is_local || plain_http { ClientProtocol::Http } else { ClientProtocol::Https };
        let auth = if plain_http && !is_local { RegistryAuth::Anonymous } else { credentials(&registry)? };
        let config = ClientConfig {
            protocol,
            platform_resolver: None,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("omc-net/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(explain).context("failed to set up a client")?;
        Ok(Self { reference, client, auth })
    }
}

/// The credentials for a registry from docker's configuration; anonymous where there are none.
fn credentials(registry: &str) -> Result<RegistryAuth> {
    // Docker keeps those of its own registry under the address of its first one.
    let server = if registry == "index.docker.io" { "https://index.docker.io/v1/" } else { registry };
    match docker_credential::get_credential(server) {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(RegistryAuth::Basic(user, password)),
        Ok(DockerCredential::IdentityToken(token)) => Ok(RegistryAuth::Bearer(token)),
        Err(
            CredentialRetrievalError::NoCredentialConfigured
            | CredentialRetrievalError::ConfigNotFound
            | CredentialRetrievalError::ConfigReadError,
        ) => Ok(RegistryAuth::Anonymous),
        // What a helper printed may be a secret.
        Err(CredentialRetrievalError::HelperFailure { helper, .. }) => {
            bail!("docker's credential helper `{helper}` failed for `{registry}`")
        }
        Err(error) => bail!("failed to read docker's credentials for `{registry}`: {error}"),
    }
}

/// An error of the client library with its causes, on one line.
fn explain(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow::Error::new(error)
}

/// Bytes that come from a stranger, up to the number that was announced.
struct Capped {
    bytes: Vec<u8>,
    limit: usize,
}

impl AsyncWrite for Capped {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Poll::Ready(Err(io::Error::other("it has more bytes than its manifest says")));
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
