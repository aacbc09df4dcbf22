"""What playlists say about recorded facts."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.errors import MediaError
from telecine.media import languages
from telecine.media.hls.playlists import iframes, master, media
from telecine.media.hls.recorded_film import Film, peak
from telecine.media.orders import Timing
from tests.support.films import NTSC, a_film, a_timing, a_video, an_audio, an_init, uri


def lines(text: str, tag: str) -> list[str]:
    return [line.removeprefix(f"#{tag}:") for line in text.splitlines() if line.startswith(f"#{tag}:")]


def lengths(text: str) -> list[Fraction]:
    return [Fraction(line.rstrip(",")) for line in lines(text, "EXTINF")]


# --- media -----------------------------------------------------------------------------------------------------------


def test_a_whole_film_is_a_vod_list_with_an_end() -> None:
    said = media(a_film(audios=()), "540p", uri)

    assert said == (
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n"
        '#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MAP:URI="init.mp4"\n'
        "#EXTINF:6.006000,\n0.m4s\n#EXTINF:6.006000,\n1.m4s\n#EXTINF:6.006000,\n2.m4s\n"
        "#EXT-X-ENDLIST\n"
    )


@given(st.lists(st.integers(200, 400), min_size=1, max_size=300), st.sampled_from([44_100, 48_000]))
def test_running_sums_stay_exact_to_a_microsecond(frames: list[int], rate: int) -> None:
    audio = an_audio(frames=tuple(frames), init=an_init("a", "mp4a.40.2", rate))
    film = Film(timing=a_timing(), audios=(audio,))

    said = lengths(media(film, audio.name, uri))

    told = truth = Fraction(0)
    for length, many in zip(said, frames, strict=True):
        told, truth = told + length, truth + Fraction(1024 * many, rate)
        assert abs(told - truth) <= Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("rate", "per", "target"), [(NTSC, 144, 6), (Fraction(25), 150, 6), (Fraction(24), 24, 1), (Fraction(24), 9, 1)]
)
def test_the_target_is_the_nearest_second_and_at_least_one(rate: Fraction, per: int, target: int) -> None:
    film = a_film(timing=Timing(rate=rate, frames=per, gop=per, per_segment=per), audios=())
    film = replace(film, videos=(replace(film.videos[0], pieces=()),), growing=True)

    assert lines(media(film, "540p", uri), "EXT-X-TARGETDURATION") == [str(target)]


def test_audio_and_video_have_one_target_even_if_a_piece_of_audio_is_longer() -> None:
    film = a_film(audios=(an_audio(frames=(282, 281, 306)),))  # the last: 6.528 s

    targets = {name: lines(media(film, name, uri), "EXT-X-TARGETDURATION") for name in ("540p", "audio-eng-2")}

    assert targets == {"540p": ["7"], "audio-eng-2": ["7"]}


def test_a_gap_never_becomes_a_list() -> None:
    video = a_video()
    film = a_film(replace(video, pieces=(video.pieces[0], video.pieces[2])))

    with pytest.raises(MediaError, match="540p has a gap: segment 1 is missing"):
        media(film, "540p", uri)


def test_pieces_are_listed_by_number_however_they_were_recorded() -> None:
    video = a_video()
    film = a_film(replace(video, pieces=video.pieces[::-1]))

    said = media(film, "540p", uri)

    assert re.findall(r"\d\.m4s", said) == ["0.m4s", "1.m4s", "2.m4s"]


def test_i_frames_are_the_header_and_first_sample_of_each_fragment() -> None:
    said = iframes(a_film(a_video(sizes=(60_000,)), timing=a_timing(segments=1)), "540p", uri)

    assert "#EXT-X-I-FRAMES-ONLY\n" in said
    assert lines(said, "EXT-X-TARGETDURATION") == ["2"]
    assert lines(said, "EXT-X-BYTERANGE") == ["1000@0", "1001@20000", "1002@40000"]
    assert lengths(said) == [Fraction("2.002")] * 3


# --- master ----------------------------------------------------------------------------------------------------------


def attributes(line: str) -> dict[str, str]:
    return dict(re.findall(r'([A-Z-]+)=("[^"]*"|[^,]*)', line))


def test_the_variant_to_start_with_is_first_and_the_others_rise() -> None:
    film = a_film(*(a_video(name) for name in ("1080p", "720p", "540p", "360p")))

    listed = re.findall(r"^(\d+p)/index", master(film, uri), re.MULTILINE)

    assert listed == ["540p", "360p", "720p", "1080p"]


def test_without_540p_the_nearest_is_first() -> None:
    film = a_film(*(a_video(name) for name in ("1080p", "480p", "240p")))

    assert [video.name for video in film.variants] == ["480p", "240p", "1080p"]


def test_bandwidth_is_the_worst_segment_and_the_average_is_of_all_with_audio() -> None:
    film = a_film(a_video(sizes=(60_060, 120_120, 30_030)))

    about = attributes(lines(master(film, uri), "EXT-X-STREAM-INF")[0])

    audio_peak, audio_mean = Fraction(96_000 * 8 * 48_000, 281 * 1024), Fraction(3 * 96_000 * 8 * 48_000, 845 * 1024)
    assert int(about["BANDWIDTH"]) == pytest.approx(160_000 + float(audio_peak), abs=2)
    assert int(about["AVERAGE-BANDWIDTH"]) == pytest.approx(210_210 * 8 / 18.018 + float(audio_mean), abs=2)


def test_a_variant_says_all_that_a_player_needs_to_choose() -> None:
    about = attributes(lines(master(a_film(), uri), "EXT-X-STREAM-INF")[0])

    del about["BANDWIDTH"], about["AVERAGE-BANDWIDTH"]
    assert about == {
        "CODECS": '"avc1.64001f,mp4a.40.2"',
        "RESOLUTION": "960x540",
        "FRAME-RATE": "23.976",
        "VIDEO-RANGE": "SDR",
        "AUDIO": '"audio"',
        "CLOSED-CAPTIONS": "NONE",
    }


def test_a_short_last_segment_is_no_peak_of_its_own() -> None:
    parts = [(600_000, Fraction(6)), (600_000, Fraction(6)), (500_000, Fraction(1))]

    assert peak(parts, 6) == 1_257_143  # the last seven seconds; the last second alone would be 4 Mbit/s


def test_a_film_shorter_than_half_a_target_has_its_average_as_peak() -> None:
    assert peak([(1000, Fraction(1))], 6) == 8000


def test_every_rung_has_an_i_frame_variant() -> None:
    said = master(a_film(a_video("540p"), a_video("360p")), uri)

    variants = [attributes(line) for line in lines(said, "EXT-X-I-FRAME-STREAM-INF")]

    assert [one["URI"] for one in variants] == ['"540p/iframe.m3u8"', '"360p/iframe.m3u8"']
    assert variants[0]["BANDWIDTH"] == "4004"  # 1002 bytes in 2.002 s


def test_audio_tracks_are_named_and_one_is_the_default() -> None:
    tracks = (
        an_audio("a", language="ger", default=False),
        an_audio("b", language="eng", title="Director's cut"),
        an_audio("c", language="deu", default=False),
        an_audio("d", language="und", default=False),
    )

    said = [attributes(line) for line in lines(master(a_film(audios=tracks), uri), "EXT-X-MEDIA")]

    assert [one["NAME"] for one in said] == ['"Deutsch"', '"Director\'s cut"', '"Deutsch (3)"', '"Audio 4"']
    assert [one.get("LANGUAGE") for one in said] == ['"de"', '"en"', '"de"', None]
    assert [one["DEFAULT"] for one in said] == ["NO", "YES", "NO", "NO"]
    assert {one["CHANNELS"] for one in said} == {'"2"'}


def test_a_title_cannot_break_out_of_its_quotes() -> None:
    audio = an_audio(title='x",URI="https://elsewhere"\n#EXT-X-ENDLIST')

    said = master(a_film(audios=(audio,)), uri)

    assert lines(said, "EXT-X-MEDIA")[0].count('"') == 10
    assert "#EXT-X-ENDLIST" not in said.splitlines()


def test_a_film_without_sound_names_no_group() -> None:
    said = master(a_film(audios=()), uri)

    assert "AUDIO" not in said
    assert attributes(lines(said, "EXT-X-STREAM-INF")[0])["CODECS"] == '"avc1.64001f"'


def test_a_film_without_pictures_is_its_default_track() -> None:
    film = Film(timing=a_timing(), audios=(an_audio("a", default=False), an_audio("b")))

    said = master(film, uri)

    assert said.splitlines()[-1] == "b/index.m3u8"
    assert [attributes(line).get("URI") for line in lines(said, "EXT-X-MEDIA")] == ['"a/index.m3u8"', None]
    assert "RESOLUTION" not in said
    assert "I-FRAME" not in said


def test_nothing_at_all_has_no_master() -> None:
    with pytest.raises(MediaError, match="without any rendition"):
        master(Film(timing=a_timing()), uri)


# --- while it grows --------------------------------------------------------------------------------------------------


def test_the_preview_lists_what_all_required_rungs_and_the_default_audio_have() -> None:
    high, low = a_video("540p"), a_video("360p")
    film = a_film(replace(high, pieces=(high.pieces[0], high.pieces[1])), replace(low, pieces=low.pieces[::2]))

    said = media(film.preview(), "540p", uri)

    assert film.prefix == 1
    assert re.findall(r"\d\.m4s", said) == ["0.m4s"]
    assert "#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-START:TIME-OFFSET=0\n" in said
    assert "ENDLIST" not in said


def test_an_optional_rung_neither_holds_the_preview_up_nor_stands_in_it() -> None:
    extra = a_video("360p", sizes=())
    film = a_film(a_video(), replace(extra, rung=replace(extra.rung, required=False)))

    assert film.prefix == 3
    assert [video.name for video in film.preview().videos] == ["540p"]


def test_another_language_that_lags_behind_has_a_shorter_list() -> None:
    film = a_film(audios=(an_audio(), an_audio("audio-fra-2", default=False, frames=(282,)))).preview()

    assert len(lengths(media(film, "audio-eng-2", uri))) == 3
    assert len(lengths(media(film, "audio-fra-2", uri))) == 1


def test_the_preview_may_begin_with_nothing() -> None:
    said = media(a_film(a_video(sizes=())).preview(), "540p", uri)

    assert "#EXTINF" not in said
    assert '#EXT-X-MAP:URI="init.mp4"' in said


def test_a_growing_list_only_gets_longer_until_its_end() -> None:
    film = a_film(a_video(sizes=(60_000,) * 3))

    early, late, whole = (
        media(
            replace(film, videos=(replace(film.videos[0], pieces=film.videos[0].pieces[:many]),)).preview(), "540p", uri
        )
        for many in (0, 1, 3)
    )

    assert late.startswith(early)
    assert whole.startswith(late)
    assert media(film, "540p", uri).split("#EXT-X-MAP")[1] == whole.split("#EXT-X-MAP")[1] + "#EXT-X-ENDLIST\n"


def test_the_master_of_a_preview_is_final_from_the_first_moment() -> None:
    empty, full = a_film(a_video(sizes=())), a_film()

    early, late = master(empty.preview(), uri), master(full.preview(), uri)

    assert early == late
    assert attributes(lines(early, "EXT-X-STREAM-INF")[0])["BANDWIDTH"] == str(540 * 4000 + 134_400)
    assert "AVERAGE-BANDWIDTH" not in early


# --- languages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "tag"),
    [("eng", "en"), ("fre", "fr"), ("FRA", "fr"), ("pt_BR", "pt-br"), ("tlh", "tlh"), ("de", "de")]
    + [(nothing, None) for nothing in ("und", "", None, 'e"n', "x" * 9)],
)
def test_a_language_is_said_by_its_shortest_tag(said: str | None, tag: str | None) -> None:
    assert languages.tag(said) == tag


@pytest.mark.parametrize(
    ("said", "name"), [("ger", "Deutsch"), ("pt-BR", "Português (BR)"), ("tlh", "tlh"), ("und", None), (None, None)]
)
def test_a_menu_shows_what_a_language_calls_itself(said: str | None, name: str | None) -> None:
    assert languages.name(said) == name
