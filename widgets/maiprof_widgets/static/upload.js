// Sends chosen files to the kernel piece by piece, one piece in flight.

function render({ model, el }) {
  const label = document.createElement("label");
  label.textContent = "Choose trace, snapshot and metrics files of one job: ";
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = true;
  input.setAttribute("aria-label", "files to upload");
  label.append(input);
  const progress = document.createElement("progress");
  progress.hidden = true;
  const status = document.createElement("div");
  status.setAttribute("role", "status");
  el.append(label, progress, status);

  let answered = () => {};
  const onMessage = (message) => answered(message.kind);
  const exchange = (message, buffers = []) =>
    new Promise((resolve) => {
      answered = resolve;
      model.send(message, undefined, buffers);
    });

  async function upload(files) {
    const total = files.reduce((sum, file) => sum + file.size, 0);
    let sent = 0;
    progress.hidden = false;
    progress.max = Math.max(total, 1);
    if ((await exchange({ kind: "begin" })) === "stop") return;
    for (const file of files) {
      for (let at = 0; at === 0 || at < file.size; at += model.get("chunk_bytes")) {
        const piece = await file.slice(at, at + model.get("chunk_bytes")).arrayBuffer();
        if ((await exchange({ kind: "piece", name: file.name }, [piece])) === "stop") return;
        sent += piece.byteLength;
        progress.value = sent;
        status.textContent = `${(sent / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB sent`;
      }
    }
    await exchange({ kind: "end" });
    progress.hidden = true;
  }

  const onChange = async () => {
    const files = [...input.files];
    if (!files.length) return;
    input.disabled = true;
    try {
      await upload(files);
    } finally {
      input.disabled = false;
      input.value = "";
    }
  };
  const showStatus = () => {
    status.textContent = model.get("status");
  };
  input.addEventListener("change", onChange);
  model.on("msg:custom", onMessage);
  model.on("change:status", showStatus);
  return () => {
    model.off("msg:custom", onMessage);
    model.off("change:status", showStatus);
  };
}

export default { render };
