"""Text of a Debian package as token ids: python -m plateau_text.prepare FOLDER [--package perl-doc] [--vocabulary 16384]

Joins the package's .pod files in the order of their names, trains a byte-level BPE vocabulary on them and writes into FOLDER

    tokenizer.json  the vocabulary
    tokens.bin      the ids of the text, little-endian u32, each file followed by one end-of-text token (id 0)

The same files and the same version of the tokenizers library give the same bytes; what is there already for them is kept.
Prints the number of tokens and the entropy of their distribution in nats, which is the loss of the best guess that looks at
no context.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess

import numpy as np
import tokenizers

END_OF_TEXT = "<|endoftext|>"


def read_package(package):
    """The texts of a package's .pod files, in the order of their names."""
    listing = subprocess.run(["dpkg", "-L", package], check=True, capture_output=True, text=True).stdout
    paths = sorted(path for path in listing.split("\n") if path.endswith(".pod"))
    texts = [pathlib.Path(path).read_bytes().decode("utf-8", "replace") for path in paths if pathlib.Path(path).is_file()]
    if not texts:
        raise SystemExit(f"prepare: the package {package} has no .pod files")
    return texts


def train_tokenizer(texts, vocabulary):
    """A byte-level BPE tokenizer of exactly `vocabulary` entries, the end of a text first."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocabulary:
        raise SystemExit(f"prepare: the text gives {tokenizer.get_vocab_size()} entries, not {vocabulary}: it is too short")
    return tokenizer


def entropy(ids):
    """Entropy in nats of the distribution of ids."""
    counts = np.unique(ids, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def prepare(folder, package, vocabulary):
    """Writes the files unless they are there; the ids."""
    texts = read_package(package)
    digest = hashlib.sha256(json.dumps([tokenizers.__version__, vocabulary, texts]).encode()).hexdigest()
    stamp, ids_file = folder / "stamp", folder / "tokens.bin"
    if not (stamp.exists() and stamp.read_text() == digest):
        folder.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        tokenizer = train_tokenizer(texts, vocabulary)
        end = tokenizer.token_to_id(END_OF_TEXT)
        ids = [encoding.ids + [end] for encoding in tokenizer.encode_batch(texts)]
        np.concatenate(ids).astype("<u4").tofile(ids_file)
        tokenizer.save(str(folder / "tokenizer.json"))
        stamp.write_text(digest)
    return np.fromfile(ids_file, "<u4"), sum(len(text.encode()) for text in texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--package", default="perl-doc")
    parser.add_argument("--vocabulary", type=int, default=16384)
    arguments = parser.parse_args()
    ids, size = prepare(arguments.folder, arguments.package, arguments.vocabulary)
    print(f"text: {size / 1e6:.1f} MB of {arguments.package}, {len(ids)} tokens, entropy {entropy(ids):.4f} nats")


if __name__ == "__main__":
    main()
