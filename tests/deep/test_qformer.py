"""The Q-Former: equal to transformers', and its invariants."""
# ruff: noqa: E402

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="networks need torch")

from safetensors.torch import save_file

from dissensus.deep.nn.features import Features
from dissensus.deep.tendency.qformer import QFormer, Shape, load_qformer
from dissensus.deep.tendency.qumatl import Qumatl
from dissensus.errors import DataError

from ..support import benchmark

SMALL = Shape(width=24, layers=5, heads=3, hidden=40)


def filled(network, spread=0.3):
    """Return a network with weights that are far from their start."""
    torch.manual_seed(0)
    for value in network.parameters():
        torch.nn.init.normal_(value, std=spread)
    return network.eval()


def tokens(n_items=4, n_tokens=9, width=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(n_items, n_tokens, generator=generator) > 0.3
    mask[:, 0] = True
    return torch.randn(n_items, n_tokens, width, generator=generator), mask


@pytest.mark.parametrize("kind", ["Blip2QFormer", "InstructBlipQFormer"])
def test_it_equals_that_of_transformers_with_equal_weights(kind, tmp_path):
    import transformers

    config = getattr(transformers, f"{kind}Config")(
        hidden_size=24,
        num_hidden_layers=5,
        num_attention_heads=3,
        intermediate_size=40,
        encoder_hidden_size=10,
        vocab_size=7,
    )
    theirs = filled(getattr(transformers, f"{kind}Model")(config))
    state = {f"qformer.{name}": value for name, value in theirs.state_dict().items()}
    queries = torch.randn(1, 6, 24)
    save_file({**state, "query_tokens": queries}, tmp_path / "model.safetensors")
    summary = {"qformer_config": config.to_dict()}
    (tmp_path / "config.json").write_text(json.dumps(summary, default=str))
    ours, found = load_qformer(tmp_path, 10)
    assert torch.equal(found, queries)
    values, mask = tokens()
    more = {} if kind.startswith("Blip2") else {"input_ids": torch.zeros(4, 0).long()}
    wanted = theirs(
        query_embeds=queries.expand(4, -1, -1),
        encoder_hidden_states=values,
        encoder_attention_mask=mask.long(),
        **more,
    ).last_hidden_state
    for weights in (False, True):
        got = ours.eval()(queries, values, mask, weights=weights).values
        assert_allclose(got.detach(), wanted.detach(), atol=1e-5)


def test_tokens_of_another_width_get_keys_of_their_own(tmp_path):
    from transformers import Blip2QFormerConfig, Blip2QFormerModel

    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3}
    config = Blip2QFormerConfig(**sizes, intermediate_size=40, encoder_hidden_size=10)
    model = filled(Blip2QFormerModel(config))
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(), default=str))
    ours, queries = load_qformer(tmp_path, 7, self_attention=False)
    assert queries is None
    assert ours.layers[0].cross.key.weight.shape == (24, 7)
    assert torch.equal(
        ours.layers[1].feed.wide.weight, model.encoder.layer[1].intermediate_query.dense.weight
    )


@pytest.mark.parametrize("positions", [(4,), (3, 4)], ids=["images", "videos"])
def test_training_begins_with_the_weights_of_a_folder(positions, tmp_path):
    from transformers import Blip2QFormerConfig, Blip2QFormerModel

    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = Blip2QFormerConfig(**sizes, intermediate_size=40, encoder_hidden_size=16)
    theirs = filled(Blip2QFormerModel(config))
    queries = torch.randn(1, 3, 24)
    state = {f"qformer.{name}": value for name, value in theirs.state_dict().items()}
    save_file({**state, "query_tokens": queries}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(), default=str))
    annotations = (
        benchmark("attentive_crowds").simulate_tendency(n_items=20, n_annotators=5).annotations
    )
    features = Features.from_tokens(np.random.default_rng(0).normal(size=(20, *positions, 16)))
    method = Qumatl(pretrained=str(tmp_path), epochs=1, lr=1e-12, frame_queries=3, fc=8)
    net = method.fit(features, annotations).nets[0]
    qformer = net.qformer if len(positions) == 1 else net.tokens.qformer
    wanted, _ = load_qformer(tmp_path, 16)
    for name, value in wanted.state_dict().items():
        assert_allclose(qformer.state_dict()[name], value, atol=1e-6, err_msg=name)
    if len(positions) == 2:
        assert_allclose(net.tokens.queries.detach(), queries, atol=1e-6)
    else:
        own = net.queries.own.all.detach()
        assert_allclose(own[3:], queries[0, :2], atol=0.2)
        assert not torch.equal(own[3], own[0])


def test_a_folder_without_a_qformer_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="not the config of a Q-Former"):
        load_qformer(tmp_path, 7)
    summary = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3}
    (tmp_path / "config.json").write_text(json.dumps({**summary, "intermediate_size": 40}))
    with pytest.raises(DataError, match="no safetensors"):
        load_qformer(tmp_path, 7)
    save_file({"something": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=r"no weights for norm\.weight, and"):
        load_qformer(tmp_path, 7)


def test_queries_in_another_order_find_the_same_in_that_order():
    qformer = filled(QFormer(SMALL, 10))
    values, mask = tokens()
    queries, order = torch.randn(1, 5, 24), torch.tensor([3, 0, 4, 1, 2])
    there = qformer(queries, values, mask).values[:, order]
    assert_allclose(
        there.detach(), qformer(queries[:, order], values, mask).values.detach(), atol=1e-5
    )


def test_weights_are_distributions_over_tokens():
    qformer = filled(QFormer(SMALL, 10))
    values, mask = tokens()
    found = qformer(torch.randn(1, 5, 24), values, mask, weights=True)
    assert [tuple(each.shape) for each in found.cross] == [(4, 3, 5, 9)] * 3
    assert [tuple(each.shape) for each in found.own] == [(4, 3, 5, 5)] * 5
    for each in [*found.cross, *found.own]:
        assert_allclose(each.sum(dim=-1).detach(), 1, atol=1e-6)
    assert float(found.cross[0].detach().permute(0, 3, 1, 2)[~mask].abs().max()) == 0


def test_masked_tokens_change_nothing():
    qformer = filled(QFormer(SMALL, 10))
    values, mask = tokens()
    queries = torch.randn(1, 5, 24)
    other = torch.where(mask[:, :, None], values, torch.full_like(values, 7.0))
    assert_allclose(
        qformer(queries, values, mask).values.detach(),
        qformer(queries, other, mask).values.detach(),
    )


@pytest.mark.parametrize("self_attention", [True, False])
def test_queries_touch_each_other_by_self_attention_alone(self_attention):
    qformer = filled(
        QFormer(Shape(width=24, layers=3, heads=3, hidden=40, self_attention=self_attention), 10)
    )
    queries = torch.randn(1, 4, 24, requires_grad=True)
    qformer(queries, *tokens()).values[:, 1].sum().backward()
    moved = queries.grad[0].abs().sum(dim=1)
    assert (moved[[0, 2, 3]] > 0).all() == self_attention
    if not self_attention:
        assert moved[[0, 2, 3]].tolist() == [0, 0, 0]


def test_added_queries_attend_to_the_others_who_do_not_attend_to_them():
    qformer = filled(QFormer(SMALL, 10))
    values, mask = tokens()
    queries = torch.randn(1, 6, 24)
    alone = qformer(queries[:, :4], values, mask).values
    both = qformer(queries, values, mask, n_added=2).values
    one = qformer(queries[:, [0, 1, 2, 3, 5]], values, mask, n_added=1).values
    assert_allclose(both[:, :4].detach(), alone.detach(), atol=1e-5)
    assert_allclose(both[:, 5].detach(), one[:, 4].detach(), atol=1e-5)


def test_a_single_query_is_an_attention_pool():
    qformer = filled(
        QFormer(Shape(width=8, layers=1, heads=2, hidden=12, self_attention=False), 10)
    )
    values, mask = tokens()
    query = torch.randn(1, 1, 8)
    got = qformer(query, values, mask).values[:, 0]
    layer = qformer.layers[0]
    start = qformer.norm(query)[0, 0]
    pooled = []
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        score = layer.cross.key(values)[:, :, part] @ layer.cross.query(start)[part] / 2
        share = score.masked_fill(~mask, -torch.inf).softmax(dim=1)
        pooled.append((share[:, :, None] * layer.cross.value(values)[:, :, part]).sum(dim=1))
    wanted = layer.feed(layer.cross.norm(start + layer.cross.out(torch.cat(pooled, dim=1))))
    assert_allclose(got.detach(), wanted.detach(), atol=1e-5)
