"""What a model can serve, from its class, its labels and the files beside it."""

from __future__ import annotations

import pytest

from boxwright import catalog
from boxwright.catalog.model_config import from_config
from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT, purpose

POOLING, MODULES = "1_Pooling/config.json", "modules.json"
ONE_LABEL = {"id2label": {"0": "LABEL_0"}}
BERT = {
    "model_type": "bert",
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}


@pytest.mark.parametrize(
    ("name", "more", "files", "serves", "can"),
    [
        ("LlamaForCausalLM", {}, (), TEXT, {TEXT, EMBEDDINGS, RERANKING}),
        ("ChatGLMModel", {}, (), TEXT, {TEXT, EMBEDDINGS, RERANKING}),
        ("Qwen3ForCausalLM", {}, (POOLING, MODULES), EMBEDDINGS, {EMBEDDINGS}),
        ("Qwen3ForCausalLM", {}, (MODULES,), None, {EMBEDDINGS, RERANKING}),
        ("BertModel", {}, (), EMBEDDINGS, {EMBEDDINGS}),
        ("XLMRobertaModel", {}, (MODULES,), EMBEDDINGS, {EMBEDDINGS}),
        ("ModernBertModel", {}, (), EMBEDDINGS, {EMBEDDINGS}),
        ("GteNewModel", {}, (), EMBEDDINGS, {EMBEDDINGS}),
        ("LlamaBidirectionalModel", {}, (), EMBEDDINGS, {EMBEDDINGS}),
        ("RobertaForMaskedLM", {}, (POOLING,), EMBEDDINGS, {EMBEDDINGS}),
        ("RobertaForMaskedLM", {}, (), None, set()),
        ("RobertaForMaskedLM", {}, (MODULES,), None, set()),
        ("BertForSequenceClassification", ONE_LABEL, (), RERANKING, {RERANKING}),
        ("Qwen3ForSequenceClassification", {"num_labels": 1}, (), RERANKING, {RERANKING}),
        ("BertForSequenceClassification", {}, (), None, set()),
        ("BertForSequenceClassification", {"num_labels": 3}, (), None, set()),
        ("BertForSequenceClassification", {"num_labels": True}, (), None, set()),
        ("DFlash2DraftModel", {}, (POOLING,), None, set()),
        ("T5EncoderModel", {}, (POOLING,), None, set()),
        ("HF_ColBERT", {}, (), None, set()),
        ("Qwen2ForRewardModel", {}, (), None, set()),
    ],
)
def test_what_a_model_can_serve(name, more, files, serves, can):
    found = purpose({"architectures": [name], **more}, files)
    assert (found.serves, set(found.can)) == (serves, can)
    assert (found.what is None) == (serves == TEXT)


@pytest.mark.parametrize(
    ("name", "more", "encoder"),
    [
        ("BertModel", {}, True),
        ("XLMRobertaForSequenceClassification", {}, True),
        ("ModernBertModel", {}, True),
        ("NomicBertModel", {}, True),
        ("GteNewModel", {}, True),
        ("LlamaBidirectionalModel", {}, True),
        ("LlamaModel", {}, False),
        ("Qwen3ForCausalLM", {}, False),
        ("Qwen2ForCausalLM", {"is_causal": False}, True),
        ("Gemma3TextModel", {"use_bidirectional_attention": True}, True),
        ("RobertaForCausalLM", {}, False),
        ("BertLMHeadModel", {}, False),
    ],
)
def test_who_keeps_nothing_of_a_sequence(name, more, encoder):
    assert from_config({**BERT, "architectures": [name], **more}).encoder is encoder


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        # BAAI/bge-large-en-v1.5: 335 million; intfloat/multilingual-e5-large: 560 million.
        ({**BERT, "architectures": ["BertModel"]}, 335e6),
        (
            {
                **BERT,
                "architectures": ["XLMRobertaModel"],
                "model_type": "xlm-roberta",
                "vocab_size": 250002,
                "max_position_embeddings": 514,
            },
            560e6,
        ),
    ],
)
def test_an_encoder_has_two_matrices_a_layer_and_no_head(config, parameters):
    found = from_config(config)
    assert found.parameters == pytest.approx(parameters, rel=0.03)
    assert found.context == 512


def test_the_catalog_has_models_for_each():
    entries = catalog.load().models.values()
    assert {entry.serves for entry in entries} == {TEXT, EMBEDDINGS, RERANKING}
    for entry in entries:
        if entry.serves != TEXT:
            assert not entry.tool_parsers
            assert entry.reasoning_parser is None
            assert entry.architecture.encoder is any(
                word in entry.architecture.name for word in ("Bert", "Roberta")
            )
